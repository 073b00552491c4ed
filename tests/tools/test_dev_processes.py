"""First runs that are interrupted or meet each other, and programs that must not be left behind.

Everything runs in a copy of the tools, where a stand-in makes ``.venv`` without a network.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools.dev import venv

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")

# Who runs the tests may ignore signals, and what they start inherits that.
LISTENING = """
import signal
for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(name, signal.SIG_DFL)
"""

# `python -m venv` as far as it matters: a Python whose pip works, and a moment in the middle.
STAND_IN = """
import re, sys, time
from pathlib import Path
from tools.dev import console, venv
from tools.dev.console import DevError, Stopped

def pause(name):
    Path(name).touch()
    while Path("slow-" + name).exists():
        time.sleep(0.01)

def make(command, **_):
    pause("making")
    venv.SCRIPTS.mkdir()
    venv.PYTHON.write_text(f'#!/bin/sh\\nexec "{sys.executable}" "$@"\\n')
    venv.PYTHON.chmod(0o755)
    return 0

def install(names):
    with Path("installs").open("a") as log:
        log.write("x")
    (venv.VENV / "half").touch()
    pause("installing")
    if Path("fail").exists():
        raise DevError("no network")
    packages = venv.VENV / "lib" / "python3" / "site-packages"
    for line in [*names, "mlsysim", "mlsysim-course"]:
        name = re.split("[^A-Za-z0-9._-]", line)[0].replace("-", "_")
        (packages / f"{name}-1.0.dist-info").mkdir(parents=True, exist_ok=True)
    (venv.VENV / "half").rename(venv.VENV / "whole")

venv.run, venv._install, venv._pip = make, install, lambda *_: None
console.stop_on_signals()
try:
    venv.ensure()
except DevError as error:
    sys.exit(str(error))
except Stopped as stopped:
    sys.exit(stopped.status)
"""


class Copy:
    """A copy of the tools in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "tools" / "dev", folder / "tools" / "dev")
        (folder / "course").mkdir()
        for name in ("tools/__init__.py", "pyproject.toml", "course/pyproject.toml"):
            shutil.copy(ROOT / name, folder / name)

    def start(self, script: str = STAND_IN) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", LISTENING + script],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            start_new_session=True,
        )

    def run(self, script: str = STAND_IN) -> tuple[int, str]:
        process = self.start(script)
        words, _ = process.communicate(timeout=60)
        return process.returncode, words

    def interrupted(self, at: str, number: int) -> tuple[int, str]:
        """Run until it is in the middle of `at`, then send it a signal."""
        slow = self.folder / f"slow-{at}"
        slow.touch()
        (self.folder / at).unlink(missing_ok=True)
        process = self.start()
        wait(lambda: (self.folder / at).exists())
        process.send_signal(number)
        words, _ = process.communicate(timeout=60)
        slow.unlink()
        return process.returncode, words

    @property
    def installs(self) -> int:
        log = self.folder / "installs"
        return len(log.read_text(encoding="utf-8")) if log.exists() else 0

    def check(self) -> None:
        """Fail unless ``.venv`` is whole, and a further run finds nothing to do."""
        before = self.installs
        assert {path.name for path in (self.folder / ".venv").iterdir()} >= {"bin", "whole"}
        assert self.run() == (0, "")
        assert self.installs == before


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


def wait(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "nothing happened for a minute"
        time.sleep(0.01)


def test_a_first_run_makes_the_environment_once(copy: Copy) -> None:
    assert copy.run()[0] == 0
    copy.check()
    assert copy.installs == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("at", ["making", "installing"])
def test_an_interrupted_first_run_is_made_good_by_the_next(
    copy: Copy, at: str, number: signal.Signals
) -> None:
    status, words = copy.interrupted(at, number)
    assert status == (-number if number == signal.SIGKILL else 128 + number)
    assert "Traceback" not in words
    assert copy.run()[0] == 0
    assert not (copy.folder / ".venv" / "half").exists()
    copy.check()


@pytest.mark.parametrize("first_dies", [False, True])
def test_a_second_first_run_waits_and_takes_over_if_the_first_dies(
    copy: Copy, first_dies: bool
) -> None:
    slow = copy.folder / "slow-installing"
    slow.touch()
    first = copy.start()
    wait((copy.folder / "installing").exists)
    second = copy.start()
    assert second.stdout is not None
    assert "waiting" in second.stdout.readline()
    if first_dies:
        first.kill()
    slow.unlink()
    for one in (first, second):
        one.communicate(timeout=60)
    assert first.returncode == (-signal.SIGKILL if first_dies else 0)
    assert second.returncode == 0
    assert copy.installs == (2 if first_dies else 1)
    copy.check()


def test_a_python_without_pip_is_replaced(copy: Copy) -> None:
    copy.run()
    (copy.folder / ".venv" / "bin" / "python").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    with (copy.folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert copy.run()[0] == 0
    assert copy.installs == 2
    copy.check()


def test_a_broken_environment_of_somebody_else_stays_as_it_is(copy: Copy) -> None:
    """Such as one that uv made, which has no pip."""
    scripts = copy.folder / ".venv" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "python").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (scripts / "python").chmod(0o755)
    status, words = copy.run()
    assert status == 1
    assert "not made by dev.py" in words
    assert [path.name for path in (copy.folder / ".venv").rglob("*")] == ["bin", "python"]
    assert copy.installs == 0


def test_an_empty_folder_is_nobodys(copy: Copy) -> None:
    (copy.folder / ".venv").mkdir()
    assert copy.run()[0] == 0
    copy.check()


def test_changed_requirements_are_installed_into_what_is_there(copy: Copy) -> None:
    copy.run()
    (copy.folder / ".venv" / "mine").touch()
    with (copy.folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    (copy.folder / "fail").touch()
    status, words = copy.run()
    assert (status, words.strip()[-10:]) == (1, "no network")
    (copy.folder / "fail").unlink()
    assert copy.run()[0] == 0
    assert (copy.folder / ".venv" / "mine").exists()
    assert copy.installs == 3
    copy.check()


def test_a_removed_requirement_is_installed_by_the_next_run(copy: Copy) -> None:
    copy.run()
    (package,) = copy.folder.glob(".venv/lib/*/site-packages/pytest-1.0.dist-info")
    package.rmdir()
    assert copy.run()[0] == 0
    assert package.is_dir()
    assert copy.installs == 2
    copy.check()


def test_an_interruption_in_what_is_there_leads_to_a_fresh_one(copy: Copy) -> None:
    copy.run()
    (copy.folder / ".venv" / "mine").touch()
    with (copy.folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    copy.interrupted("installing", signal.SIGKILL)
    assert copy.run()[0] == 0
    assert not (copy.folder / ".venv" / "mine").exists()
    copy.check()


FAMILY = """
import sys
from tools.dev import console
from tools.dev.console import Stopped
from concurrent.futures import ThreadPoolExecutor

child = ["sh", "-c", "echo $$ >> pids; exec sleep 600"]
console.stop_on_signals()
try:
    if "{how}" == "run":
        console.run(child)
    elif "{how}" == "follow":
        console.follow(child, print)
    else:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(console.run, [child, child]))
except Stopped as stopped:
    sys.exit(stopped.status)
"""


def runs(pid: int) -> bool:
    """Whether a process is there, and has not ended already without anyone's notice."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return (
        subprocess.run(["kill", "-0", str(pid)], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("how", ["run", "follow", "threads"])
def test_what_was_started_ends_with_the_one_who_started_it(
    copy: Copy, how: str, number: signal.Signals
) -> None:
    process = copy.start(FAMILY.replace("{how}", how))
    pids = copy.folder / "pids"
    wait(lambda: pids.exists() and pids.read_text().count("\n") == (2 if how == "threads" else 1))
    process.send_signal(number)
    words, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in words
    wait(lambda: not any(runs(int(pid)) for pid in pids.read_text().split()))


def test_a_missing_program_is_told_in_words(copy: Copy) -> None:
    status, words = copy.run("from tools.dev.console import run\nrun(['./no-such-program'])")
    assert status == 1
    assert "DevError: ./no-such-program cannot be started" in words


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told_in_a_line(copy: Copy) -> None:
    """In the copy: the site that is built here stays for the tests that look at it."""
    shutil.copytree(ROOT / "tools", copy.folder / "tools", dirs_exist_ok=True)
    shutil.copy(ROOT / "dev.py", copy.folder)
    (copy.folder / "_preview").mkdir()
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "dev.py", "clean"],
            cwd=copy.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert not (copy.folder / "_preview").exists()


# pip's settings, as `pip config list` prints them


def test_uv_is_told_of_the_indexes_that_pip_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*venv.UV_NAMES.values(), "UV_INDEX_STRATEGY"):
        monkeypatch.delenv(name, raising=False)
    found = venv.uv_settings(
        ":env:.index-url='https://second.example/simple'\n"
        "global.cert='/etc/ssl/ca.crt'\n"
        "global.find-links='/opt/wheels\\n/opt/more'\n"
        "global.index-url='https://first.example/simple'\n"
        "install.extra-index-url='file:///opt/a file:///opt/b'"
    )
    assert found == {
        "SSL_CERT_FILE": "/etc/ssl/ca.crt",
        "UV_DEFAULT_INDEX": "https://second.example/simple",
        "UV_FIND_LINKS": "/opt/wheels,/opt/more",
        "UV_INDEX": "file:///opt/a file:///opt/b",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mine.example")
    assert "UV_DEFAULT_INDEX" not in (venv.uv_settings("global.index-url='x'") or {})


@pytest.mark.parametrize("setting", ["no-index='true'", "proxy='http://x'", "constraint='c.txt'"])
def test_what_uv_cannot_follow_is_left_to_pip(setting: str) -> None:
    assert venv.uv_settings(f"global.{setting}") is None
