"""The engine of a run, whatever learns: its settings, what it writes down, and its course from stage to stage."""
