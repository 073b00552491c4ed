"""A long list of ways to get a configuration wrong."""

from __future__ import annotations

from collections.abc import Callable

from tests.scenario.samples import CAMERA, TRAINING, camera, put, without

SWITCHES = ("yes", "True", "on")


def several(
    old: str, word: str, line: int | None, *values: str, edit: Callable[[str, str], str] = put
) -> dict[str, tuple[str, str, int | None]]:
    """Return cases in which one part of a file has different values, refused for one reason."""
    return {f"{old}: {value[:40]}": (edit(old, value), word, line) for value in values}


# (text, a word of the message, the line that is named or None)
YAML: dict[str, tuple[str, str, int | None]] = {
    # nothing, or something else altogether
    "empty": ("", "empty", None),
    "blank": (" \n\n\t\n", "empty", None),
    "comment alone": ("# nothing here\n", "is empty", None),
    "a word": ("hello", "keys and values", 1),
    "a number": ("42", "keys and values", 1),
    "a list": ("- a\n- b\n", "keys and values", 1),
    "null": ("null", "is empty", 1),
    "binary": ("name: \0", "binary", None),
    "a program": ("import os\nos.remove('x')\n", "keys and values", 1),
    "html": ("<html><body>name: x</body></html>", "unknown key", 1),
    # not YAML
    "open quote": (put("name: Pretraining", 'name: "Pretraining'), "not valid YAML", None),
    "open brace": (put("{at_least: 0.2}", "{at_least: 0.2"), "not valid YAML", None),
    "open bracket": (put("256", "[256"), "not valid YAML", None),
    "tab as indent": (put("  batch_size: 256", "\tbatch_size: 256"), "not valid YAML", 7),
    "bad indent": (put("  tp_size: 8", " tp_size: 8"), "not valid YAML", None),
    "two colons": (put("model: Llama3_70B", "model: a: b"), "not valid YAML", 4),
    "no space after colon": (put("task: training", "task:training"), "not valid YAML", None),
    **several("Pretraining", "not valid YAML", None, '"\\q"', "@home", "`ls`", "a\x07b"),
    **several("Pretraining", "not valid YAML", None, '"\\UFFFFFFFF"'),
    "unclosed anchor": (put("256", "& 256"), "not valid YAML", 7),
    # YAML that we do not take
    **several("256", "tag", 7, "!!python/object/apply:os.system ['true']", "!!int '256'"),
    **several("Pretraining", "tag", 1, "!!python/name:os.system", "!!python/module:os", "!mine x"),
    **several("Pretraining", "tag", 1, "!!str Pretraining", "!!binary aGVsbG8=", "! x"),
    "tag set": (put("{at_least: 0.2}", "!!set {at_least}"), "tag", 13),
    "tag on key": (put("name: Pretraining", "!!str name: Pretraining"), "tag", 1),
    "anchor": (put("256", "&n 256"), "anchor &n", 7),
    "anchor on mapping": (put("limits:\n  mfu", "limits: &l\n  mfu"), "anchor &l", 12),
    "alias": (put("batch_size: 256", "batch_size: &n 256\n  seq_len: *n"), "alias *n", 8),
    "alias as key": (put("name: Pretraining", "name: &k x\n*k : y"), "a key must be", 2),
    **several("  batch_size: 256", "merge", 7, "  <<: {batch_size: 256}", "  <<: [{tp: 1}]"),
    "laughs": (
        'a: &a ["x","x"]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nd: [*c,*c,*c]\n',
        "anchor",
        1,
    ),
    "recursive alias": ("name: &a [*a]\n", "anchor", 1),
    "directive": ("%YAML 1.1\n---\n" + TRAINING, "directives", None),
    "tag directive": ("%TAG ! tag:x.org,2002:\n---\n" + TRAINING, "directives", None),
    "odd directive": ("%YAML 1.99999999999\n---\n" + TRAINING, "YAML", None),
    "two documents": (TRAINING + "---\n" + TRAINING, "second document", 23),
    "complex key": (put("name: Pretraining", "? [a, b]\n: Pretraining"), "plain name", 1),
    "empty key": (put("name: Pretraining", '"": Pretraining'), "not a name", 1),
    "duplicate at the top": (TRAINING + "name: Again\n", "twice", 22),
    "duplicate below": (put("tp_size: 8", "tp_size: 8\n  tp_size: 4"), "twice", 9),
    "duplicate in braces": (put("{at_least: 0.2}", "{at_least: 0.2, at_least: 0.3}"), "twice", 13),
    **several("256", "deeper than 20", 7, "[" * 30 + "]" * 30, "{a: " * 30 + "1" + "}" * 30),
    "abyss": ("[" * 50_000, "deeper than 20", 1),
    "many values": (put("256", "[" + "1," * 6000 + "1]"), "more than 5000 values", 7),
    "too large": ("#" * 300_000, "larger than 64 KiB", None),
    # numbers
    **several("0.2", "not a finite number", 13, ".nan", "NaN", ".inf", "-.Inf", "Infinity"),
    **several("256", "out of range", 7, "1e999", "1e31"),
    **several("256", "must be a number", 7, "256}", "0400", "0o400", "0x100", "0b100", "4:16"),
    **several("256", "must be a number", 7, "2_56", "+256", "1,024", "2026-01-01", '"256"', "true"),
    **several("256", "whole number", 7, "2.5", "0"),
    "underflow": (put("0.2", "1e-999"), "out of range", 13),
    "endless digits": (put("256", "9" * 10_000), "too many digits", 7),
    "negative": (put("tp_size: 8", "tp_size: -8"), "whole number", 8),
    "no value": (put("256", ""), "batch_size is None", 7),
    # words
    **several("parallel: true", "write true or false", 11, *map("parallel: {}".format, SWITCHES)),
    **several("name: Pretraining", "write text", 1, "name: 42", "name: true", "name: null"),
    **several("name: Pretraining", "write text", 1, "name: [a]"),
    "empty name": (put("name: Pretraining", 'name: ""'), "1 to 200 characters", 1),
    "long name": (put("Pretraining", "x" * 500), "1 to 200 characters", 1),
    "long text": (put("A run on rented nodes.", "x" * 20_000), "longer than", 2),
    **several("Pretraining", "cannot be printed", 1, '"\\ud800"', '"\\e[2J"', "a\u202eb", '"\\0"'),
    "key turned around": (CAMERA + "\u202eroloc: red\n", "not a name", 7),
    "description as group": (put("A run on rented nodes.", "{a: 1}"), "write text", 2),
    # keys
    "no name": (without("name"), "is missing", 1),
    "no task": (without("task"), "is missing", 1),
    "no model": (without("model"), "is missing", 1),
    "no system": (without("system"), "is missing", 1),
    "misspelt key": (camera("limits:", "limit:"), "did you mean limits", 6),
    "unknown key": (CAMERA + "color: red\n", "allowed: name", 7),
    "capital key": (camera("name:", "Name:"), "did you mean name", 1),
    # what it names
    "unknown task": (camera("inference", "inferense"), "did you mean inference", 2),
    "task as list": (camera("inference", "[inference]"), "is not one of", 2),
    "unknown model": (camera("ResNet50", "ResNet5"), "did you mean ResNet50", 3),
    "model as group": (camera("ResNet50", "{a: 1}"), "name of a model", 3),
    **several("Llama3_70B", "does not exist", 4, "../../etc/passwd", "__class__"),
    "device as model": (camera("ResNet50", "T4"), "of the kind Accelerator", 3),
    "unknown device": (camera("T4", "T44"), "did you mean T4", 4),
    "model as device": (camera("T4", "ResNet50"), "of the kind FixedShapeModel", 4),
    "system as text": (camera("{hardware: T4}", "T4"), "keys and values", 4),
    "system as null": (camera("{hardware: T4}", ""), "is empty", 4),
    "system without keys": (camera("{hardware: T4}", "{}"), "name one of", 4),
    "two systems": (put("{node: DGX_H100,", "{node: DGX_H100, hardware: T4,"), "exactly one", 5),
    "unknown system key": (camera("hardware: T4", "gpu: T4"), "unknown key", 4),
    "no fabric": (put(", fabric: InfiniBand_NDR", ""), "needs count and fabric", 5),
    "no count": (put("count: 32, ", ""), "needs count and fabric", 5),
    "count beside a device": (
        camera("{hardware: T4}", "{hardware: T4, count: 2}"),
        "cannot be combined",
        4,
    ),
    **several("count: 32", "whole number", 5, "count: 1.5", "count: 0", "count: many"),
    **several("count: 32", "whole number", 5, "count: 1e20"),
    "unknown fabric": (put("InfiniBand_NDR", "InfiniBand_NDX"), "did you mean InfiniBand_", 5),
    "unknown node": (put("DGX_H100", "DGX_H10"), "did you mean DGX_H100", 5),
    # arguments
    "unknown argument": (put("tp_size", "tpsize"), "did you mean tp_size", 8),
    "model as argument": (
        put("  batch_size", "  model: GPT3\n  batch_size"),
        "not an argument of training",
        7,
    ),
    "missing argument": (put("  batch_size: 256\n", ""), "batch_size is missing", 6),
    "arguments as list": (
        camera("{batch_size: 1, precision: int8}", "[1]"),
        "keys and values",
        5,
    ),
    "arguments as null": (camera("{batch_size: 1, precision: int8}", ""), "is empty", 5),
    **several("int8", "choose one of", 5, "int7", "8", edit=camera),
    "format without support": (
        camera("T4", "Coral").replace("int8", "fp16"),
        "not supported",
        5,
    ),
    "unknown choice": (put("tp_size: 8", "tp_size: 8\n  recompute: ful"), 'did you mean "full"', 9),
    "share above one": (put("tp_size: 8", "tp_size: 8\n  efficiency: 40"), "at most 1", 9),
    "share as percent": (
        put("tp_size: 8", "tp_size: 8\n  efficiency: 40 %"),
        "must be a number",
        9,
    ),
    # arguments that do not agree
    "sizes that do not tile": (put("tp_size: 8", "tp_size: 3"), "does not divide", 8),
    "more stages than layers": (put("pp_size: 4", "pp_size: 128"), "layers", 9),
    "odd precision": (put("tp_size: 8", "tp_size: 8\n  precision: int8"), "cannot train", 9),
    "no transformer": (put("Llama3_70B", "ResNet50"), "takes a transformer", 4),
    "no generator": (
        "name: x\ntask: serving\nmodel: BERT_Base\nsystem: {hardware: T4}\n",
        "does not generate",
        3,
    ),
    "more ranks than devices": (
        "name: x\ntask: serving\nmodel: Llama3_8B\nsystem: {hardware: H100}\n"
        "arguments: {tp_size: 4}\n",
        "more than the 1 device",
        5,
    ),
    # limits
    "unknown metric": (camera("latency", "latancy"), "did you mean latency", 6),
    **several("latency", "unknown key", 6, "itl", "bottleneck", edit=camera),
    "no bound": (camera("{at_most: 10 ms}", "{}"), "no bound", 6),
    "unknown bound": (camera("at_most", "at_mots"), "did you mean at_most", 6),
    **several("10 ms", "number and a unit", 6, "10", "[10 ms]", "null", edit=camera),
    **several("10 ms", "is unknown", 6, "10 parsec", "9 lambda", edit=camera),
    **several("10 ms", "not a unit", 6, "9**9**9**9 ms", "9 ms**99999", "9 open('x')", edit=camera),
    "bound of another kind": (camera("10 ms", "10 GB"), "wrong dimension", 6),
    "negative bound": (camera("10 ms", "-10 ms"), "zero or more", 6),
    "bound that is no number": (camera("10 ms", "nan ms"), "not an amount", 6),
    "bound out of range": (camera("10 ms", "1e99 ms"), "out of range", 6),
    "limit as text": (camera("{at_most: 10 ms}", "10 ms"), "keys and values", 6),
    "limits as list": (camera("{latency: {at_most: 10 ms}}", "[a]"), "keys and values", 6),
    "crossed bounds": (
        camera("at_most: 10 ms", "at_most: 1 ms, at_least: 1 s"),
        "above",
        6,
    ),
    "unit on a share": (put("0.2", "0.2 GB"), "wrong dimension", 13),
    # macro
    "unknown macro key": (put("duration_days", "duration_day"), "did you mean duration_days", 16),
    "no duration": (put("duration_days: 30", "duration_days: 0"), "above zero", 16),
    "duration as text": (put("duration_days: 30", "duration_days: a month"), "write a number", 16),
    "duration without end": (put("duration_days: 30", "duration_days: .inf"), "not a finite", 16),
    "unknown region": (put("Quebec", "Quebek"), "did you mean Quebec", 17),
    "rack as region": (put("Quebec", "Air_Cooled"), "of the kind Rack", 17),
    "price without unit": (put("0.06 USD/kWh", "0.06"), "number and a unit", 18),
    "price per day": (put("0.06 USD/kWh", "0.06 USD/day"), "wrong dimension", 18),
    "price below zero": (put("0.06 USD/kWh", "-0.06 USD/kWh"), "zero or more", 18),
    "price of fantasy": (put("0.06 USD/kWh", "0.06 EUR/kWh"), "is unknown", 18),
    "facility as word": (
        put("  region: Quebec", "  facility: no\n  region: Quebec"),
        "true or false",
        17,
    ),
    "facility without grid": (put("region: Quebec", "facility: false"), "needs a region", 17),
    "facility beside a list": (
        put("region: Quebec", "region: [Quebec]\n  facility: false"),
        "name of a region",
        17,
    ),
    "facility in a facility": (
        put("region: Quebec", "region: Hyperscale_US\n  facility: false"),
        "needs a region",
        18,
    ),
    "busier than busy": (put("utilization: 0.8", "utilization: 1.5"), "at most 1", 19),
    "busy as truth": (put("utilization: 0.8", "utilization: true"), "write a number", 19),
    "unknown macro metric": (put("carbon_footprint", "carbon_footprnt"), "did you mean carbon", 21),
    "metric of the solver": (put("carbon_footprint", "mfu"), "unknown key", 21),
    "mass as energy": (put("100 tonne", "100 MWh"), "wrong dimension", 21),
    "macro as list": (put("duration_days: 30", "- 30"), "YAML", None),
}

_JSON = (
    '{\n "name": "Camera",\n "task": "inference",\n "model": "ResNet50",\n'
    ' "system": {"hardware": "T4"},\n "arguments": {"batch_size": 1}\n}\n'
)


def edited(old: str, new: str) -> str:
    """Return the JSON file with one part replaced."""
    assert _JSON.count(old) == 1, old
    return _JSON.replace(old, new)


JSON: dict[str, tuple[str, str, int | None]] = {
    "empty": ("", "empty", None),
    "a word": ("hello", "not valid JSON", 1),
    "a number": ("42", "keys and values", 1),
    "a list": ("[]", "keys and values", 1),
    "null": ("null", "is empty", 1),
    "YAML": (CAMERA, "not valid JSON", 1),
    "single quotes": (_JSON.replace('"', "'"), "not valid JSON", 2),
    "trailing comma": (edited("1}\n", "1,}\n"), "not valid JSON", 6),
    "comment": (_JSON.replace("{\n", "{ // here\n", 1), "not valid JSON", 1),
    "open brace": (_JSON.rstrip().rstrip("}"), "not valid JSON", None),
    "extra data": (_JSON + "{}", "not valid JSON", 8),
    **several("1}", "not a finite number", 6, "NaN}", "-Infinity}", edit=edited),
    **several("1}", "not valid JSON", 6, "01}", "1.}", edit=edited),
    **several("Camera", "cannot be printed", 2, "\\ud800", "\\u0007", edit=edited),
    "overflow": (edited("1}", "1e999}"), "out of range", 6),
    "endless digits": (edited("1}", "9" * 10_000 + "}"), "too many digits", 6),
    "duplicate": (edited('"task"', '"name": "x",\n "task"'), "twice", 3),
    "duplicate below": (edited("1}", '1,\n "batch_size": 2}'), "twice", 7),
    "empty key": (edited('"task"', '"": 1, "task"'), "not a name", 3),
    "control character": (edited("Camera", "a\x01"), "not valid JSON", 2),
    "deep lists": ("[" * 200 + "]" * 200, "deeper than 20", 1),
    "abyss": ("[" * 60_000, "deep", None),
    "deep end": ("[" * 30_000 + "]" * 30_000, "deep", None),
    "many values": ("[" + "1," * 9000 + "1]", "more than 5000 values", 1),
    "unknown device": (edited("T4", "T44"), "did you mean T4", 5),
    "number as name": (edited('"Camera"', "3"), "write text", 2),
    "no whole batch": (edited("1}", "1.5}"), "whole number", 6),
}
