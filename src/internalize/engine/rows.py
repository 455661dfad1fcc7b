"""What a run writes down: the rows of metrics.jsonl and the content of result.json, with the only keys there are."""

from typing import Any, Literal, NotRequired, TypedDict


class Check(TypedDict):
    """A look at the validation accuracy, after some steps of training."""

    kind: Literal["check"]
    stage: int
    shown: int  # units that the stage shows
    step: int  # optimizer steps of the whole run
    loss: float | None  # mean over the steps since the check before; None where none were taken
    validation: dict[str, float]  # accuracy by distribution or file; empty under the fixed schedule
    tokens: NotRequired[int]  # trained on, where they are counted


class Written(TypedDict, total=False):
    """What a language model wrote, on average."""

    tokens: float
    before_answer: float  # of them before the answer's marker
    unanswered: int  # rows without a marker


class Measured(TypedDict):
    """Accuracy on one split in one mode."""

    kind: Literal["test", "validation"]
    moment: Literal["switch", "adapted", "final"]  # before a stage's first step, at its end, at the end of the run
    stage: int
    attempt: NotRequired[int]  # not in journals of the first version
    step: int
    mode: str  # stage (as the stage shows it), cot (full chain), direct (no chain), forced, or "length 7"
    shown: int
    split: str
    accuracy: float
    low: float  # Wilson's 95 % interval over the inputs
    high: float
    n: int
    distinct: int
    tokens: NotRequired[float]  # as in `Written`
    before_answer: NotRequired[float]
    unanswered: NotRequired[int]


class StageEnd(TypedDict):
    """The end of an attempt at a stage."""

    kind: Literal["end"]
    stage: int
    attempt: int
    passed: bool
    saved: bool  # whether its weights are now the stage's
    step: int
    tokens: NotRequired[int]


class Rollback(TypedDict):
    """The weights from the end of an earlier stage are taken up."""

    kind: Literal["rollback"]
    stage: int
    to: int
    step: int


class Text(TypedDict):
    """Perplexity on a text that is to be remembered."""

    kind: Literal["text"]
    moment: Literal["given", "adapted", "final"]
    stage: int
    attempt: int
    step: int
    perplexity: float


Row = Check | Measured | StageEnd | Rollback | Text

BySplit = dict[str, float]


class Result(TypedDict, total=False):
    """The outcome of a seed. Accuracies and what goes with them are of the final model: by mode, then by split."""

    command: str
    seed: int
    stages: int
    stages_reached: int
    steps: int
    examples: int
    tokens: int  # trained on, where they are counted
    parameters: int
    seconds: float
    attention: str
    accuracy: dict[str, BySplit]
    distinct: dict[str, int]
    success: dict[str, dict[str, bool]]
    asked: dict[str, int]  # inputs of each split, where they are the user's
    written: dict[str, BySplit]  # mean tokens written
    before_answer: dict[str, BySplit]
    rows: int  # training rows
    skipped: int
    perplexity: dict[str, float]  # of the text: given, final
    certificate: dict[str, Any]
    construction: dict[str, Any]
    verification: dict[str, Any]
    versions: dict[str, str]
    commit: str | None
    machine: dict[str, Any]
    finished: str
