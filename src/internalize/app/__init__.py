"""The playground: a page on this machine on which trained models are asked, with and without their chain.

    internalize play DIR

`player` says what can be asked, `sandbox` and `language` ask runs and language models, and `server` puts them on the page
(`play.html`, `play.js`). The extra is imported where it is used: `pip install "internalize[app]"`.
"""
