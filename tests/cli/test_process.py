"""Commands run as processes: exit codes, pipes, terminals and interrupts. No command prints a traceback."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import zarrlite

ROOT = Path(zarrlite.__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def run_on_terminal(*arguments: str, **environment: str) -> tuple[int, str]:
    """Run a command on a pseudo-terminal, and return its exit code and its output."""
    leader, follower = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-m", "zarrlite", *arguments],
        stdout=follower,
        stderr=follower,
        env={**ENVIRONMENT, "TERM": "xterm", **environment},
    )
    os.close(follower)
    output = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:  # the process has closed its end of the terminal
            break
        if not data:
            break
        output += data
    os.close(leader)
    return started.wait(), output.decode()


def test_a_command_runs_as_a_process(hierarchy, process):
    ran = process("tree", "a.zarr")
    assert ran == (0, "/\n└── raw\n    └── image (10, 10) float64\n", "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["info", "nope"], 3, "zarrlite info: nope does not exist\n"),
        (["diff", "a.zarr", "a.zarr/raw"], 1, ""),
        (["dump", "a.zarr/raw/image", "0:"], 0, ""),
        (["dump", "a.zarr/raw/image", "10"], 2, "is out of bounds for a dimension of length 10\n"),
        (["info", "unknown.zarr"], 4, 'zarr.json#/codecs/0: "nope" is not a known codec'),
    ],
    ids=["not found", "problem", "fine", "usage", "unsupported"],
)
def test_a_process_exits_with_the_exit_code_of_the_command(arguments, code, message, hierarchy, process):
    array = zarrlite.create_array("unknown.zarr", shape=(2,), dtype="u1")
    document = bytes(array.store.get("zarr.json")).replace(b'"zstd"', b'"nope"').replace(b'"bytes"', b'"nope"')
    array.store.set("zarr.json", document)
    ran = process(*arguments)
    assert ran.code == code
    assert message in ran.err
    assert ran.err.count("\n") == bool(message)


def test_output_is_coloured_on_terminals_but_not_in_pipes(hierarchy, process):
    piped = process("ls", "-l", "a.zarr/raw")
    assert piped == (0, "type   shape     data type  chunks  shards  name\n" + piped.out.split("\n")[1] + "\n", "")
    code, output = run_on_terminal("ls", "-l", "a.zarr/raw")
    assert code == 0
    assert "\x1b[" in output
    assert "image" in output


def test_no_color_and_dumb_terminals_turn_colours_off(hierarchy):
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        code, output = run_on_terminal("info", "a.zarr", **environment)
        assert code == 0
        assert "\x1b" not in output
        assert "Type" in output


def test_progress_is_shown_only_on_a_terminal(hierarchy, process):
    code, output = run_on_terminal("copy", "a.zarr", "b.zarr")
    assert code == 0
    assert "copy" in output.split("copied")[0]
    assert process("copy", "a.zarr", "c.zarr").err == ""


def test_tables_and_progress_work_without_rich(hierarchy, tmp_path):
    (tmp_path / "rich.py").write_text("raise ImportError")
    code, output = run_on_terminal("copy", "a.zarr", "b.zarr", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert code == 0
    assert "\r\x1b[Kcopy 0/12 (0%)" in output
    code, output = run_on_terminal("ls", "-l", "a.zarr", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert "\x1b[1mtype\x1b[0m" in output


def test_a_dump_to_a_file_shows_its_progress(hierarchy, tmp_path):
    (tmp_path / "rich.py").write_text("raise ImportError")
    plain = f"{tmp_path}{os.pathsep}{ROOT}"
    for name in ("a.npy", "a.csv"):
        code, output = run_on_terminal("dump", "a.zarr/raw/image", "-o", name, PYTHONPATH=plain)
        assert code == 0
        assert output.startswith("\r\x1b[Kdump 0/100 (0%)\r\x1b[K")
    assert np.load("a.npy").shape == (10, 10)
    code, output = run_on_terminal("dump", "a.zarr/raw/image", "--format", "csv", PYTHONPATH=plain)
    assert code == 0
    assert "dump" not in output


def test_commands_take_urls_of_fsspec(hierarchy, process):
    url = f"local://{os.getcwd()}/a.zarr"
    assert process("tree", url) == process("tree", "a.zarr")
    assert process("copy", url, f"simplecache::file://{os.getcwd()}/b.zarr").code == 0
    assert process("diff", "a.zarr", "b.zarr").code == 0
    assert process("fsck", url).code == 0


def test_a_closed_pipe_ends_the_command_without_an_error_message(hierarchy):
    zarrlite.create_array("long.zarr", shape=(200_000,), dtype="u1")
    command = f"{sys.executable} -m zarrlite dump long.zarr --format csv | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.stdout, done.stderr) == ("0\n141\n", "")


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        (">/dev/full", 1, "standard output cannot be written: No space left on device"),
    ],
)
def test_closed_and_full_standard_streams_are_handled(redirection, code, message, hierarchy):
    command = f"{sys.executable} -m zarrlite info a.zarr {redirection}"
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment)
    assert done.returncode == code
    assert done.stderr == (f"zarrlite: {message}\n" if message else "")


HALTED_COPY = """
import os, runpy, signal, sys, threading, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs with SIGINT ignored
opened = 0

def halt(event, arguments):
    global opened
    if event != "open" or threading.current_thread() is not threading.main_thread():
        return
    opened += os.path.isdir("other.zarr/c")
    if opened == 100:  # there are 900 chunks, and each is written to its own file
        os.mkdir("halted")
        while os.path.isdir("halted"):
            time.sleep(0.01)

sys.addaudithook(halt)
runpy.run_module("zarrlite", run_name="__main__", alter_sys=True)
"""
SECONDS = 120  # how long to wait for a child process; only a failing test waits this long


def test_ctrl_c_prints_one_line_and_rerunning_the_command_resumes_the_copy(hierarchy, process):
    """The command pauses itself while it writes chunks, so that the signal arrives neither too early nor too late."""
    data = np.random.default_rng(0).integers(0, 255, (600, 600), dtype="u1")
    zarrlite.create_array("many.zarr", data=data, chunks=(60, 60), compressors=None)
    command = ["reencode", "many.zarr", "other.zarr", "--chunks", "20,20"]
    with subprocess.Popen(
        [sys.executable, "-c", HALTED_COPY, *command],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as started:
        try:
            limit = time.monotonic() + SECONDS
            while started.poll() is None and not os.path.exists("halted") and time.monotonic() < limit:
                time.sleep(0.01)
            assert os.path.exists("halted")
            started.send_signal(signal.SIGINT)
            _, err = started.communicate(timeout=SECONDS)
        finally:
            started.kill()
    assert (started.returncode, err) == (130, "zarrlite reencode: interrupted; rerun the same command to resume\n")
    message = "zarrlite info: other.zarr is an unfinished copy; rerun the command that created it to finish it\n"
    assert process("info", "other.zarr") == (3, "", message)
    assert process(*command).code == 0
    assert np.array_equal(zarrlite.open("other.zarr", mode="r"), data)


def test_control_characters_in_names_and_values_are_escaped(hierarchy, process):
    root = zarrlite.open_group("a.zarr")
    root.attrs["x"] = "\x1b[31mred\nline"
    ran = process("info", "a.zarr", PYTHONIOENCODING="ascii")
    assert ran.code == 0
    assert "Attribute x  : \\x1b[31mred\\nline\n" in ran.out
    assert process("info", "nope\n\x1b[0m").err == "zarrlite info: nope\\n\\x1b[0m does not exist\n"


def test_names_and_values_cannot_control_a_terminal(hierarchy):
    evil = "\x1b[31m\x1b]0;owned\x07"
    group = zarrlite.create_group("evil.zarr")
    group.create_array(f"array{evil}", data=[1])
    group.create_group(f"refused{evil}")
    Path("evil.zarr", f"refused{evil}", "zarr.json").write_text("[]")
    zarrlite.create_array("text.zarr", data=np.array([evil], "T"))
    for command in (
        ("tree", "evil.zarr"),
        ("ls", "evil.zarr"),
        ("ls", "-l", "evil.zarr"),
        ("dump", "text.zarr"),
        ("dump", "text.zarr", "--format", "csv"),
    ):
        _, output = run_on_terminal(*command)
        assert "\\x1b]0;owned" in output.replace("\r\n", ""), command
        assert "\x1b]" not in output, command


def test_a_fifo_in_place_of_a_document_does_not_block_the_command(hierarchy):
    os.mkdir("f.zarr")
    os.mkfifo("f.zarr/zarr.json")
    started = subprocess.Popen(
        [sys.executable, "-m", "zarrlite", "info", "f.zarr"], stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    readable, _, _ = select.select([started.stderr], [], [], 60)
    assert readable
    assert started.wait() == 3
    assert started.stderr is not None
    started.stderr.close()


WORDS = "several short words that must not be broken"


@pytest.mark.parametrize("extra", [{}, {"NO_COLOR": "1"}], ids=["colours", "plain"])
def test_words_are_not_broken_on_a_narrow_terminal(hierarchy, extra):
    zarrlite.create_array(
        "a.zarr/raw/with-a-longer-name", shape=(1000, 1000), dtype="float64", attributes={"note": WORDS}
    )
    for arguments in (["ls", "-l", "a.zarr/raw"], ["info", "a.zarr/raw/with-a-longer-name"], ["--help"]):
        code, output = run_on_terminal(*arguments, COLUMNS="44", **extra)
        lines = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in output.splitlines()]
        assert code == 0
        assert max(len(line) for line in lines if not line.startswith("Store")) <= 44  # its path cannot be wrapped
        words = {word for line in lines for word in line.split()}
        expected = {
            "ls": {"with-a-longer-name", "(1000,", "float64"},
            "info": {*WORDS.split()},
            "--help": {"hierarchy,"},
        }
        assert expected[arguments[0]] <= words
