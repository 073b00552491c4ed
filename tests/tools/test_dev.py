"""The steps of dev.py that decide something: what is up to date, which Quarto, what is an error."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import stat
import struct
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from http.client import HTTPConnection
from importlib import metadata
from io import BytesIO
from pathlib import Path
from urllib.error import URLError

import pytest

from tests.conftest import ROOT
from tests.docs.browser import served
from tools.dev import publish, quarto, serving, venv
from tools.dev.console import DevError
from tools.dev.fingerprint import Stamp, fingerprint
from tools.preview import npm
from tools.preview import site as preview_site

posix = pytest.mark.skipif(os.name == "nt", reason="the stand-in for Quarto is a shell script")


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


def dev(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "dev.py", *words]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def test_no_command_prints_the_help() -> None:
    done = dev()
    assert done.returncode == 0
    for command in ("site", "serve", "test", "check", "bench", "api", "clean"):
        assert f"\n    {command} " in done.stdout


def test_dev_needs_nothing_installed() -> None:
    """Without site-packages, as on a fresh machine."""
    command = [sys.executable, "-I", "-S", "-c", "import sys; sys.path[:0] = ['.']; import dev"]
    subprocess.run(command, cwd=ROOT, check=True)


def test_a_requirement_that_was_removed_is_installed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not venv.missing()
    monkeypatch.setattr(venv, "VENV", tmp_path)
    folder = tmp_path / ("Lib" if os.name == "nt" else "lib/python3.11") / "site-packages"
    for line in [*venv.requirements(), "mlsysim", "mlsysim_course"]:
        name = line.split(";")[0].split("<")[0].split(">")[0].split("=")[0]
        (folder / f"{name.replace('-', '_')}-1.0.dist-info").mkdir(parents=True, exist_ok=True)
    assert not venv.missing()
    (folder / "PyYAML-1.0.dist-info").rmdir()
    (folder / "mlsysim_course-1.0.dist-info").rmdir()
    assert venv.missing() == {"PyYAML", "mlsysim-course"}


def test_a_folder_that_cannot_be_written_is_reported_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import dev as program

    def refuse() -> int:
        raise PermissionError(13, "Permission denied", str(ROOT / "build"))

    monkeypatch.setattr(program, "command", refuse)
    monkeypatch.setattr(program, "stop_on_signals", lambda: None)
    assert program.main() == 1
    said = capsys.readouterr().err
    assert str(ROOT / "build") in said
    assert "copy" in said


def test_requirements_name_every_extra_once() -> None:
    names = venv.requirements()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(venv.EXTRAS) == extras["project"]["optional-dependencies"].keys()
    assert len(names) == len(set(names))
    assert not [name for name in names if name.startswith("quarto-cli")]


def test_a_fingerprint_sees_names_and_bytes(tmp_path: Path) -> None:
    first = tmp_path / "a.txt"
    first.write_text("one", encoding="utf-8")
    before = fingerprint([tmp_path])
    assert before == fingerprint([tmp_path])
    first.write_text("two", encoding="utf-8")
    changed = fingerprint([tmp_path])
    first.rename(tmp_path / "b.txt")
    assert len({before, changed, fingerprint([tmp_path])}) == 3


def test_a_fingerprint_does_not_see_what_editors_keep(tmp_path: Path) -> None:
    (tmp_path / "a.qmd").touch()
    before = fingerprint([tmp_path])
    for name in (".a.qmd.swp", ".#a.qmd", "a.qmd~", "~$a.qmd"):
        (tmp_path / name).touch()
    assert fingerprint([tmp_path]) == before


def test_a_stamp_holds_until_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.dev.fingerprint.STAMPS", tmp_path)
    stamp = Stamp("step")
    assert stamp.read() == ""
    stamp.write("1")
    assert stamp.read() == "1"
    stamp.forget()
    assert stamp.read() == ""


def test_version_and_wheels_are_those_of_the_package() -> None:
    import mlsysim

    assert publish.version() == mlsysim.__version__ == metadata.version("mlsysim-course")
    assert publish.wheel_names() == (
        f"mlsysim-{mlsysim.__version__}-py3-none-any.whl",
        f"mlsysim_course-{mlsysim.__version__}-py3-none-any.whl",
    )


class TestQuarto:
    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No Quarto of this machine, and no attempt to install one."""
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
        monkeypatch.delenv("QUARTO", raising=False)
        monkeypatch.setattr(quarto, "SCRIPTS", tmp_path / "scripts")
        monkeypatch.setattr(quarto, "NO_QUARTO", tmp_path / "no-quarto")
        monkeypatch.setattr(quarto, "_install", lambda: (tmp_path / "no-quarto").touch())

    def test_one_try_is_remembered(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tries: list[int] = []
        monkeypatch.setattr(quarto, "_install", lambda: tries.append(1))
        quarto.NO_QUARTO.touch()
        assert quarto.find(retry=False) is None
        assert not tries
        assert quarto.find(retry=True) is None
        assert len(tries) == 1

    def test_a_wrong_variable_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QUARTO", "/no/such/quarto")
        with pytest.raises(DevError, match=r"/no/such/quarto"):
            quarto.find(retry=False)

    @posix
    def test_the_variable_comes_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        named = program(tmp_path / "mine", "exit 0")
        monkeypatch.setenv("QUARTO", str(named))
        assert quarto.find(retry=False) == named

    @posix
    def test_a_launcher_without_quarto_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "scripts").mkdir()
        program(tmp_path / "scripts" / "quarto", "exit 1")
        assert quarto.find(retry=False) is None

    def test_publishing_refuses_the_preview(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MLSYSIM_REQUIRE_QUARTO", "1")
        with pytest.raises(DevError, match="MLSYSIM_REQUIRE_QUARTO"):
            publish.site(retry_quarto=False, force=False)

    @posix
    def test_a_warning_in_the_log_is_an_error(self, tmp_path: Path) -> None:
        warns = program(tmp_path / "warns", "echo 'WARN: Unable to resolve crossref @fig-x' >&2")
        with pytest.raises(DevError, match="@fig-x"):
            quarto.render(warns, ROOT / "build" / "none")
        quiet = "echo Output created: _site/index.html; echo '[IPKernelApp] WARNING | TCP' >&2"
        quarto.render(program(tmp_path / "quiet", quiet), ROOT / "build" / "none")
        with pytest.raises(DevError, match="failed"):
            quarto.render(program(tmp_path / "fails", "exit 1"), ROOT / "build" / "none")

    @posix
    def test_a_few_pages_are_named_in_the_fault(self, tmp_path: Path) -> None:
        warns = program(tmp_path / "warns", "echo 'WARN: Unable to resolve crossref @fig-x' >&2")
        for pages in (("docs/a.qmd",), ("docs/a.qmd", "docs/b.qmd")):
            with pytest.raises(quarto.UnrenderedError) as caught:
                quarto.render(warns, ROOT / "build" / "none", pages)
            assert list(caught.value.pages) == list(pages)

    @posix
    def test_the_page_that_was_rendered_last_is_named_in_the_fault(self, tmp_path: Path) -> None:
        """As Quarto prints it: in color, and each page over the line of the one before."""
        lines = r"\r\033[1m\033[34m\r[  8/401] index.qmd\033[39m\033[22m\n"
        lines += r"\r\033[1m\033[34m\r[ 9/401] docs/how-to/units.qmd\033[39m\033[22m\n"
        fails = program(tmp_path / "fails", f"printf '{lines}'; exit 1")
        with pytest.raises(quarto.UnrenderedError) as caught:
            quarto.render(fails, ROOT / "build" / "none")
        assert caught.value.pages == ["docs/how-to/units.qmd"]


# Recorded from Quarto 1.9, ipykernel 7.4, matplotlib and pandoc 3.8.
OF_QUARTO = [
    "WARN: Error encountered when rendering files",
    "ERROR: Render target does not exist: docs/none.qmd",
    "\x1b[33mWARN: Unable to resolve link target: docs/nowhere.qmd\x1b[39m",
    "[✓] \x1b[33mWARN: something\x1b[39m",
    "\x1b[33mWARNING (/opt/quarto/share/filters/main.lua:4711) Unable to resolve crossref @fig-x",
    "\x1b[39m\x1b[31mERROR (/opt/quarto/share/filters/modules/jog.lua:173) Don't know how to",
    "[WARNING] Citeproc: citation nobody2020 not found",
    "[warning] Div at line 3 column 1 unclosed at line 9 column 1",
]
OF_OTHERS = [
    "[IPKernelApp] WARNING | Kernel is running over TCP without encryption. All communication "
    "(including code and outputs) is sent in plain text and is susceptible to eavesdropping.",
    "Starting python3 kernel...[IPKernelApp] WARNING | Kernel is running over TCP without",
    "[ 12/401] docs/concepts/WARNINGS.qmd",
    "  Cell 3/7: 'fig-ERROR'...Done",
    "Output created: build/next/_site/docs/api/ConfigError.html",
    "WARNING:matplotlib.font_manager: generated new fontManager",
    "",
]


@pytest.mark.parametrize("line", OF_QUARTO)
def test_what_quarto_warns_of_is_trouble(line: str) -> None:
    assert quarto.is_trouble(line)
    assert quarto.is_trouble(f"  {line}")


@pytest.mark.parametrize("line", OF_OTHERS)
def test_what_kernels_and_libraries_write_is_none(line: str) -> None:
    assert not quarto.is_trouble(line)


def test_serving_needs_a_built_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "ROOT", tmp_path)
    with pytest.raises(DevError, match=r"dev\.py site"):
        serving.built()
    (tmp_path / "_preview").mkdir()
    (tmp_path / "_preview" / "index.html").touch()
    assert serving.built() == tmp_path / "_preview"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a small site while it is served as `dev.py serve` does."""
    (tmp_path / "index.html").write_text("here", encoding="utf-8")
    (tmp_path / "404.html").write_text("not here", encoding="utf-8")
    with served(tmp_path) as address:
        yield address.removeprefix("http://")


def asked(site: str, method: str, path: str) -> tuple[int, str]:
    connection = HTTPConnection(site, timeout=10)
    connection.putrequest(method, path)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.parametrize("path", ["/none", "/%00", "/a%00b.html", "/%ED%A0%80", f"/{'x' * 5000}"])
def test_an_address_that_no_file_has_is_missing(
    path: str, site: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert asked(site, "GET", path) == (404, "not here")
    assert asked(site, "HEAD", path) == (404, "")
    assert asked(site, "GET", "/") == (200, "here")
    assert capfd.readouterr().err == ""


def test_a_reader_that_leaves_is_not_worth_a_word(
    site: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "large").write_bytes(b"x" * 10**7)
    with socket.create_connection(site.split(":")) as reader:
        linger = struct.pack("ii", 1, 0)  # leave with a reset
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        reader.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        reader.recv(10)
    assert asked(site, "GET", "/") == (200, "here")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("port", ["70000", "-1", "x", "1e3", "9" * 5000, "４２００"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    done = dev("serve", f"--port={port}")
    assert done.returncode == 2
    assert "65535" in done.stderr
    assert "Traceback" not in done.stderr


class TestNpm:
    """A machine that npm's registry is out of reach of."""

    @pytest.fixture(autouse=True)
    def away(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused(*_: object, **__: object) -> None:
            raise URLError(ConnectionRefusedError(111, "Connection refused"))

        monkeypatch.setattr(publish, "NPM", tmp_path)
        monkeypatch.setattr("urllib.request.urlopen", refused)

    @pytest.mark.parametrize(("program", "pages"), [(None, "plain"), (Path("quarto"), "text")])
    def test_it_is_told_in_one_sentence_that_names_npm(
        self, program: Path | None, pages: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        missing = publish.browser_files(program)
        assert len(missing) == (1 if program else 2)
        words = capsys.readouterr().out
        assert words.startswith("npm ")
        assert words.count("\n") == 1
        assert pages in words

    def test_the_preview_is_built_all_the_same(self, tmp_path: Path) -> None:
        assert preview_site._libraries(tmp_path) == []

    def test_an_answer_that_is_not_the_file_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Such as the page on which a hotel asks for a room number."""
        page = BytesIO(b"<html>Welcome</html>")
        monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: page)
        with pytest.raises(DevError, match="hash"):
            publish.browser_files(None)
        assert not list(tmp_path.rglob("*.js"))

    @pytest.mark.parametrize("stop", [0, 1])
    def test_an_interruption_leaves_no_half_of_a_package(
        self, stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        archive = BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as tar:
            for name in ("a.js", "b.js"):
                member = tarfile.TarInfo(f"package/{name}")
                member.size = 4
                tar.addfile(member, BytesIO(b"true"))
        digest = base64.b64encode(hashlib.sha512(archive.getvalue()).digest()).decode()
        wanted = {("x", "1.0"): (digest, ("a.js", "b.js"))}
        monkeypatch.setattr(npm, "_download", lambda *_: archive.getvalue())
        writes: list[str] = []
        real = Path.write_bytes

        def interrupted(self: Path, data: bytes) -> int:
            writes.append(self.name)
            if len(writes) == stop + 1:
                raise KeyboardInterrupt
            return real(self, data)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", interrupted)
            with pytest.raises(KeyboardInterrupt):
                list(npm.files(tmp_path, wanted))
        assert [path.read_bytes() for path in npm.files(tmp_path, wanted)] == [b"true", b"true"]
