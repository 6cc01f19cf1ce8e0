"""launch/kubernetes.yaml against the schemas of the APIs it is written for."""

import pathlib
from typing import Any

import pytest
import yaml

LAUNCH = pathlib.Path(__file__).parents[2] / "launch"

# Of the API references of JobSet v1alpha2, batch/v1 and v1: what a manifest may have
# here, by name and type. A name that an API does not know is refused there, too.
CONTAINER = {
    "name": str,
    "image": str,
    "workingDir": str,
    "ports": [{"containerPort": int}],
    "command": [str],
    "resources": {"limits": {"nvidia.com/gpu": int}},
    "volumeMounts": [{"name": str, "mountPath": str}],
}
POD = {
    "restartPolicy": str,
    "terminationGracePeriodSeconds": int,
    "containers": [CONTAINER],
    "volumes": [{"name": str, "persistentVolumeClaim": {"claimName": str}}],
}
JOB = {
    "parallelism": int,
    "completions": int,
    "completionMode": str,
    "backoffLimit": int,
    "template": {"spec": POD},
}
JOB_SET = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str},
    "spec": {
        "failurePolicy": {"maxRestarts": int},
        "replicatedJobs": [{"name": str, "replicas": int, "template": {"spec": JOB}}],
    },
}


def check_schema(value: Any, schema: Any, path: str = "") -> None:
    if isinstance(schema, dict):
        assert isinstance(value, dict), path
        assert value.keys() == schema.keys(), path
        for key, inside in schema.items():
            check_schema(value[key], inside, f"{path}.{key}")
    elif isinstance(schema, list):
        assert isinstance(value, list) and value, path
        for number, element in enumerate(value):
            check_schema(element, schema[0], f"{path}[{number}]")
    else:
        assert type(value) is schema, f"{path} is {value!r}"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("backoffLimit", "backofLimit"),
        ("maxRestarts", "maxRestart"),
        ("terminationGracePeriodSeconds", "terminationGrace"),
        ("nvidia.com/gpu: 8", "nvidia.com/gpu: [8]"),
    ],
)
def test_a_name_or_a_type_that_no_api_has_is_noticed(right: str, wrong: str) -> None:
    text = (LAUNCH / "kubernetes.yaml").read_text()
    assert right in text
    with pytest.raises(AssertionError, match="spec"):
        check_schema(yaml.safe_load(text.replace(right, wrong)), JOB_SET)


def test_the_manifest_is_a_job_set_whose_numbers_agree() -> None:
    """Check what the v1alpha2 schema of JobSet requires, and what main does."""
    manifest = yaml.safe_load((LAUNCH / "kubernetes.yaml").read_text())
    check_schema(manifest, JOB_SET)
    assert manifest["apiVersion"] == "jobset.x-k8s.io/v1alpha2"
    assert manifest["kind"] == "JobSet"
    name = manifest["metadata"]["name"]
    [workers] = manifest["spec"]["replicatedJobs"]
    job = workers["template"]["spec"]
    assert job["parallelism"] == job["completions"]
    assert job["completionMode"] == "Indexed"
    pod = job["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    [container] = pod["containers"]
    command = container["command"]
    port = container["ports"][0]["containerPort"]
    host = f"{name}-{workers['name']}-0-0.{name}:{port}"
    assert f"--coordinator={host}" in command
    assert f"--num_processes={job['completions']}" in command
    assert "--process_id=$(JOB_COMPLETION_INDEX)" in command
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
    assert (LAUNCH / "one_host.sh").exists() and command[0] == "launch/one_host.sh"
