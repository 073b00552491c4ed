"""The command as a process: Ctrl-C, closed pipes, the bar on a terminal."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys

import pytest

from mlsysim.cli import main

SMALL = ["sweep", "inference", "--model", "ResNet50", "--hardware", "A100,H100"]
MANY = ",".join(map(str, range(1, 151)))
# Millions of rows: seconds, so that there is time to interrupt it.
LONG = [
    *("sweep", "training", "--model", "Llama3_70B", "--fleet", "Research_256"),
    *("--invalid", "mark", "--limit", "1"),
    *("--batch-size", MANY, "--seq-len", MANY, "--microbatch-count", MANY),
]
posix = pytest.mark.skipif(os.name != "posix", reason="terminals and groups are POSIX's")


PRINTED = {"capture_output": True, "text": True, "check": True}


def command(words: list[str]) -> list[str]:
    return [sys.executable, "-m", "mlsysim", *words]


def read(terminal: int) -> bytes:
    """Read what was written to a terminal; on Linux an error says that it was closed."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def interruptible() -> None:
    # A shell starts jobs in the background with the signal ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@posix
def test_a_long_sweep_shows_its_progress_and_ctrl_c_ends_all_of_it():
    ours, theirs = os.openpty()
    with subprocess.Popen(
        command(LONG),
        stdout=subprocess.PIPE,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=interruptible,
    ) as running:
        os.close(theirs)
        drawn = read(ours)
        assert drawn.startswith(b"\r[#")
        assert b"3,375,000 rows" in drawn
        os.killpg(running.pid, signal.SIGINT)
        printed, _ = running.communicate(timeout=60)
        assert running.returncode == 130
        assert printed == b""
    while more := read(ours):
        drawn += more
    os.close(ours)
    assert b"Traceback" not in drawn
    assert drawn.endswith(b"\n")
    with pytest.raises(ProcessLookupError):  # nobody is left in its group
        os.killpg(running.pid, 0)


@posix
@pytest.mark.parametrize("seed", range(4))
def test_ctrl_c_while_the_command_loads_has_no_traceback(seed):
    """Python reports each module that it has loaded, which is when we interrupt it."""
    modules = random.Random(seed).randint(1, 120)
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "mlsysim", "zoo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=interruptible,
        text=True,
    ) as running:
        for line in running.stderr:
            modules -= "mlsysim" in line
            if not modules:
                break
        running.send_signal(signal.SIGINT)
        _, rest = running.communicate(timeout=60)
    assert "Traceback" not in rest
    assert running.returncode == 130


@posix
def test_a_program_that_imports_the_package_keeps_its_handler():
    code = "import signal, mlsysim; print(signal.getsignal(2) is signal.default_int_handler)"
    done = subprocess.run(
        [sys.executable, "-c", code, "-m", "mlsysim"], preexec_fn=interruptible, **PRINTED
    )
    assert done.stdout.strip() == "True"


@posix
def test_a_short_sweep_shows_no_bar():
    ours, theirs = os.openpty()
    done = subprocess.run(command(SMALL), stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    assert read(ours) == b""
    os.close(ours)
    assert b"latency" in done.stdout


@posix
@pytest.mark.parametrize("words", [SMALL, ["schema"]], ids=["table", "json"])
def test_a_closed_pipe_is_no_fault_to_report(words):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command(words), stdout=writer, stderr=subprocess.PIPE, encoding="utf-8", check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_ctrl_c_during_the_imports_is_an_interruption(monkeypatch):
    class Interrupted:
        def find_spec(self, name, *_):
            if name == "mlsysim.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "mlsysim.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


@posix
def test_a_closed_output_is_an_error():
    line = f"{shlex.join(command(SMALL))} >&-"
    done = subprocess.run(line, shell=True, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the output cannot be written")
