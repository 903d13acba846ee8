"""Checks of the machine, on this one and under limits that a child is given."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from llmpipe.core import cgroup, machine
from llmpipe.core.child import Children
from llmpipe.core.finding import Finding, gravest, joined
from llmpipe.core.gpu import gpu, visible

SMI = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><driver_version>580.82.07</driver_version><cuda_version>13.0</cuda_version>
{gpus}</nvidia_smi_log>"""
GPU = """<gpu id="00000000:01:00.0"><product_name>NVIDIA H200</product_name>
<fb_memory_usage><total>{total}</total><used>{used}</used></fb_memory_usage></gpu>"""


def limited(limit: str, soft: int, hard: int, check: str) -> Finding:
    """What a check says in a process with that limit."""
    code = (
        "import json, resource; from dataclasses import asdict; from llmpipe.core import machine\n"
        f"resource.setrlimit(resource.{limit}, ({soft}, {hard}))\n"
        f"print(json.dumps(asdict(machine.{check}())))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return Finding(**json.loads(done.stdout))


def test_the_gravest_remark_decides() -> None:
    assert gravest("ok", "warning", "skipped") == "warning"
    parts = ("ok", "a", ""), ("problem", "b", "mend it"), ("warning", "c", "mend it")
    assert joined("x", *parts) == Finding("x", "problem", "a; b; c", "mend it")


def test_few_open_files_are_a_warning_with_what_the_hard_limit_allows() -> None:
    finding = limited("RLIMIT_NOFILE", 256, 1000, "open_files")
    assert finding.state == "warning"
    assert finding.found.startswith("256 at once")
    assert finding.do.startswith("ulimit -n 1000; ask the administrator for 65536")
    assert "ulimit" not in limited("RLIMIT_NOFILE", 256, 256, "open_files").do
    assert limited("RLIMIT_NOFILE", 4096, 4096, "open_files") == Finding(
        "open-files", "ok", "4096 at once (ulimit -n)"
    )


def test_few_processes_are_a_warning() -> None:
    finding = limited("RLIMIT_NPROC", 500, 600, "processes")
    assert finding.state == "warning"
    assert "of 500 (ulimit -u)" in finding.found
    ask = "ask the administrator for more (nproc in limits.conf)"
    assert finding.do == f"ulimit -u 600; {ask}"  # 600 are too few, too
    assert limited("RLIMIT_NPROC", 500, 500, "processes").do == ask
    assert limited("RLIMIT_NPROC", 500, 90_000, "processes").do == "ulimit -u 90000"


def test_threads_are_counted_as_the_kernel_does() -> None:
    used = int(machine.processes().found.partition(" threads")[0])
    assert used >= len(list(Path("/proc/self/task").iterdir()))


def test_a_disk_is_judged_by_its_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    first, *_ = machine.disk()
    assert first.found.startswith(f"{tmp_path / 'models'} has ")
    monkeypatch.setattr(machine, "_DISK", (1 << 40, 0))
    assert next(machine.disk()).state == "warning"
    monkeypatch.setattr(machine, "_DISK", (1 << 40, 1 << 40))
    few, *_ = machine.disk()
    assert (few.state, "larger disk" in few.do) == ("problem", True)
    monkeypatch.setattr(machine, "_INODES", 1 << 60)
    assert "inodes" in next(machine.disk()).found
    assert not list((tmp_path / "models").iterdir())


def test_a_folder_that_cannot_be_written_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/proc")  # nobody, root included, can make a file there
    first, *_ = machine.disk()
    assert first.state == "problem"
    assert "can't be written" in first.found
    assert "cd to a folder of your own" in first.do
    assert machine.temporary(Path("/proc")).do.endswith("export RAY_TMPDIR=DIR of your own")


def test_this_machine_has_memory_cores_and_shared_memory() -> None:
    assert f"{os.cpu_count()} cores" in machine.cores().found
    assert "GiB available of" in machine.memory().found
    assert "/dev/shm" in machine.shm().found
    nofile, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert f"ulimit -n {nofile}" in machine.limits()


def test_little_shared_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_SHM", 1 << 30)
    finding = machine.shm()
    assert finding.state == "warning"
    assert "--shm-size" in finding.do


def test_cores_are_held_against_the_containers_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "cores", lambda: 0.5)
    finding = machine.cores()
    assert finding.state == "warning"
    assert "gets the time of 0.5" in finding.found
    assert finding.do == "export OMP_NUM_THREADS=1; in Python: ray.init(num_cpus=1)"


def test_memory_is_what_the_container_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "memory", lambda: cgroup.Room(2 << 30, 1 << 30))
    finding = machine.memory()
    assert finding.state == "problem"
    assert "1.0 GiB left of 2.0 GiB" in finding.found


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def test_limits_of_version_2_count_on_every_level(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/job/step\n")
    root = tmp_path / "cgroup"
    write(root / "job", cpu__max="400000 100000", pids__max="1000", pids__current="990")
    write(root / "job", memory__max="1000", memory__current="900")
    (root / "job/memory.stat").write_text("anon 500\ninactive_file 300\n")
    write(root / "job/step", cpu__max="max 100000", pids__max="max", pids__current="4")
    write(root / "job/step", memory__max="max", memory__current="7")
    assert cgroup.cores(root, own) == 4
    assert cgroup.tasks(root, own) == cgroup.Room(1000, 990)
    assert cgroup.memory(root, own) == cgroup.Room(1000, 600)


def test_limits_of_version_1_in_a_container(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n3:pids:/docker/abc\n0::/\n")
    root = tmp_path / "cgroup"  # a container sees its own folder as the root
    write(root / "cpu,cpuacct", cpu__cfs_quota_us="250000", cpu__cfs_period_us="100000")
    write(root / "memory", memory__limit_in_bytes="9223372036854771712")
    write(root / "memory", memory__usage_in_bytes="5")
    write(root / "pids", pids__max="64", pids__current="60")
    assert cgroup.cores(root, own) == 2.5
    assert cgroup.memory(root, own) is None
    assert cgroup.tasks(root, own) == cgroup.Room(64, 60)
    (root / "cpu,cpuacct/cpu.cfs_quota_us").write_text("-1\n")
    assert cgroup.cores(root, own) is None


def test_without_cgroups_there_are_no_limits(tmp_path: Path) -> None:
    nowhere = tmp_path / "none"
    assert cgroup.cores(nowhere, nowhere) is None
    assert cgroup.memory(nowhere, nowhere) is None
    assert cgroup.tasks(nowhere, nowhere) is None


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for nvidia-smi that prints a file and ends with the code in another."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "nvidia-smi"
    script.write_text(f"#!/bin/sh\n. {folder}/hang\ncat {folder}/out\nexit $(cat {folder}/code)\n")
    script.chmod(0o755)
    (folder / "code").write_text("0")
    (folder / "hang").touch()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def found() -> Finding:
    with Children() as children:
        return gpu(children)


def test_gpus_are_listed_with_driver_and_cuda(smi: Path) -> None:
    idle = GPU.format(total="143771 MiB", used="4 MiB")
    shared = GPU.format(total="N/A", used="N/A")  # memory is the machine's own
    (smi / "out").write_text(SMI.format(gpus=idle + shared))
    finding = found()
    assert finding.state == "ok"
    assert "0: NVIDIA H200 (0.0 of 140 GiB used), 1: NVIDIA H200;" in finding.found
    assert "driver 580.82.07, CUDA up to 13.0" in finding.found


def test_a_busy_gpu_is_a_warning_with_the_others(smi: Path) -> None:
    busy = GPU.format(total="143771 MiB", used="120000 MiB")
    idle = GPU.format(total="143771 MiB", used="4 MiB")
    (smi / "out").write_text(SMI.format(gpus=busy + idle))
    finding = found()
    assert (finding.state, finding.do) == ("warning", "export CUDA_VISIBLE_DEVICES=1")
    assert finding.found.endswith("in use: 0")


def test_hidden_gpus_are_a_warning(smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (smi / "out").write_text(SMI.format(gpus=GPU.format(total="100 MiB", used="0 MiB")))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert (found().state, found().do) == ("warning", "unset CUDA_VISIBLE_DEVICES")


def test_visible_gpus_are_named_as_cuda_names_them(
    smi: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (smi / "out").write_text(
        "GPU 0: NVIDIA H200 (UUID: GPU-1f)\n"
        "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2f)\n"
        "  MIG 3g.20gb     Device  0: (UUID: MIG-3a)\n"
        "  MIG 3g.20gb     Device  1: (UUID: MIG-4b)\n"
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible() == ["0", "MIG-3a", "MIG-4b"]
    for text, names in (("3, GPU-1f", ["3", "GPU-1f"]), ("", []), ("1,-1,0", ["1"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
        assert visible() == names


def test_a_driver_that_does_not_fit_its_library_is_a_problem(smi: Path) -> None:
    text = "Failed to initialize NVML: Driver/library version mismatch"
    (smi / "out").write_text(text)
    (smi / "code").write_text("18")
    finding = found()
    assert finding.state == "problem"
    assert text in finding.found
    assert "reboot" in finding.do


def test_a_driver_that_hangs_is_a_problem(smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmpipe.core.gpu._SECONDS", 0.5)
    (smi / "hang").write_text("sleep 600\n")
    finding = found()
    assert (finding.state, finding.found) == ("problem", "nvidia-smi gives no answer in 0.5 s")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\x1b[31mnot a report & no XML", " [31mnot a report & no XML"),
        ("<html><body>moved</body></html>", "<html><body>moved</body></html>"),
        ("", "nothing"),
    ],
)
def test_an_answer_that_cannot_be_read_is_said_with_its_mend(
    smi: Path, said: str, shown: str
) -> None:
    (smi / "out").write_text(said)
    finding = found()
    assert finding.state == "problem"
    assert finding.found == f"what nvidia-smi says can't be read: {shown.strip()}"
    assert finding.do.startswith("run nvidia-smi by hand; if that fails, too: install the driver")


def test_an_nvidia_smi_that_may_not_be_run_is_said_with_its_mend(smi: Path) -> None:
    program = smi / "nvidia-smi"
    program.chmod(0o644)
    finding = found()
    assert (finding.state, finding.found) == (
        "problem",
        f"{program} can't be run: Permission denied",
    )
    assert finding.do.startswith(f"chmod a+rx {program} ")
    program.chmod(0o755)
    (smi / "out").write_text("cat: /dev/nvidiactl: Permission denied")
    (smi / "code").write_text("126")
    assert found().do == "ls -l /dev/nvidia*; ask the administrator for access"
    program.write_text("#!/no/such/shell\n")
    assert found().found.startswith(f"{program} can't be run: No such file")


def test_an_nvidia_smi_that_fails_without_a_word(smi: Path) -> None:
    (smi / "out").touch()
    (smi / "code").write_text("9")
    assert found().found == "nvidia-smi fails: exit code 9, and not a word"
    assert found().do.startswith("run nvidia-smi by hand")


def test_no_gpu_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if list(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("this machine has a GPU")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asdict(found())["found"] == "no NVIDIA GPU found"
    assert "ask for a machine with a GPU" in found().do
    assert found().state == "warning"
