#!/usr/bin/env python3
"""The Helm chart: lints, renders in many shapes, agrees with the Kubernetes schemas, and refuses values that do not fit.

Usage: chart_test.py TOOLS_FOLDER BIN_FOLDER, with the virtual environment's Python of TOOLS_FOLDER (tests/deploy/install_tools.sh).
What the chart passes to merope-server and merope-worker is given to the real programs with --print-config.
"""
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import kubernetes_validate
import yaml

ROOT = pathlib.Path(os.environ.get("MEROPE_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
CHART = ROOT / "deploy" / "helm" / "merope"
TOOLS, BIN = (pathlib.Path(argument) for argument in sys.argv[1:3])

SCHEMA_VERSION = "1.34"
# Custom resources: their schemas belong to the operators and are not in the Kubernetes release.
CUSTOM = {("keda.sh/v1alpha1", "ScaledObject"), ("monitoring.coreos.com/v1", "PodMonitor")}

MODEL = {"worker.model.existingClaim": "models"}
ON = {
    "keda": {"keda.enabled": "true"},
    "monitor": {"metrics.podMonitor.enabled": "true", "metrics.podMonitor.labels.release": "prometheus"},
    "autoscaling": {"server.autoscaling.enabled": "true"},
    "external redis": {"redis.enabled": "false", "externalRedis.host": "redis.example", "externalRedis.existingSecret": "redis"},
    "cpu": {"worker.gpu.count": "0", "worker.device": "cpu", "worker.image.repository": "merope/worker-cpu"},
    "open": {"networkPolicy.enabled": "false", "server.podDisruptionBudget.enabled": "false"},
}


def helm(*arguments, values=()):
    sets = [f"--set={key}={value}" for key, value in dict(values).items()]
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, **{f"HELM_{kind}_HOME": f"{home}/{kind}" for kind in ("CACHE", "CONFIG", "DATA")}}
        return subprocess.run(
            [str(TOOLS / "bin" / "helm"), *arguments, *sets], capture_output=True, text=True, check=False, env=environment, timeout=60
        )


def render(values, release="clips", namespace="video"):
    result = helm("template", release, str(CHART), "--namespace", namespace, values={**MODEL, **values})
    if result.returncode != 0:
        raise AssertionError(f"{values}: {result.stderr}")
    return [document for document in yaml.safe_load_all(result.stdout) if document]


def find(documents, kind, suffix):
    (found,) = [d for d in documents if d["kind"] == kind and d["metadata"]["name"].endswith(suffix)]
    return found


class ChartTest(unittest.TestCase):
    def test_lint_is_clean(self):
        result = helm("lint", "--strict", str(CHART), values=MODEL)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_every_combination_agrees_with_the_schemas(self):
        checked = 0
        # Every switch alone, every pair, and all at once.
        combinations = [c for n in (0, 1, 2, len(ON)) for c in itertools.combinations(ON, n)]
        for combination in combinations:
            values = {key: value for name in combination for key, value in ON[name].items()}
            documents = render(values)
            for document in documents:
                where = f"{combination}: {document['kind']} {document['metadata']['name']}"
                if (document["apiVersion"], document["kind"]) in CUSTOM:
                    continue
                try:
                    kubernetes_validate.validate(document, SCHEMA_VERSION, strict=True)
                except kubernetes_validate.ValidationError as error:
                    self.fail(f"{where}: {error}")
                checked += 1
            names = [(d["kind"], d["metadata"]["name"]) for d in documents]
            self.assertEqual(len(names), len(set(names)), f"{combination}: a name twice")
            kinds = {d["kind"] for d in documents}
            self.assertEqual("ScaledObject" in kinds, "keda" in combination)
            self.assertEqual("PodMonitor" in kinds, "monitor" in combination)
            self.assertEqual("StatefulSet" in kinds, "external redis" not in combination)
            self.assertEqual("NetworkPolicy" in kinds, "open" not in combination)
            self.assertEqual("replicas" in find(documents, "Deployment", "-worker")["spec"], "keda" not in combination)
            self.assertEqual("replicas" in find(documents, "Deployment", "-server")["spec"], "autoscaling" not in combination)
        self.assertGreater(checked, 200)

    def test_the_schemas_find_what_is_wrong(self):
        deployment = find(render({}), "Deployment", "-server")
        deployment["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(deployment, SCHEMA_VERSION, strict=True)

    def test_selectors_find_their_pods(self):
        documents = render(ON["monitor"])
        pods = [d["spec"]["template"] for d in documents if d["kind"] in ("Deployment", "StatefulSet")]

        def matched(labels):
            return [p for p in pods if labels.items() <= p["metadata"]["labels"].items()]

        for document in documents:
            spec = document["spec"]
            if document["kind"] == "Service":
                (pod,) = matched(spec["selector"])
                names = {port["name"] for c in pod["spec"]["containers"] for port in c["ports"]}
                for port in spec["ports"]:
                    self.assertIn(port["targetPort"], names)
            elif document["kind"] in ("PodDisruptionBudget", "Deployment", "StatefulSet"):
                self.assertEqual(len(matched(spec["selector"]["matchLabels"])), 1, document["metadata"]["name"])
            elif document["kind"] == "NetworkPolicy":
                (pod,) = matched(spec["podSelector"]["matchLabels"])
                names = {port["name"] for c in pod["spec"]["containers"] for port in c["ports"]}
                for rule in spec["ingress"]:
                    for port in rule["ports"]:
                        self.assertIn(port["port"], names)
            elif document["kind"] == "PodMonitor":
                self.assertEqual(len(matched(spec["selector"]["matchLabels"])), 3)
                (expression,) = spec["selector"]["matchExpressions"]
                self.assertEqual(expression["values"], ["server", "worker"])

    def test_containers_run_with_the_least_rights(self):
        for document in render({}):
            if document["kind"] not in ("Deployment", "StatefulSet"):
                continue
            pod = document["spec"]["template"]["spec"]
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertFalse(pod["automountServiceAccountToken"])
            for container in pod["containers"]:
                security = container["securityContext"]
                self.assertFalse(security["allowPrivilegeEscalation"])
                self.assertTrue(security["readOnlyRootFilesystem"])
                self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
                self.assertIn("limits", container["resources"])

    def test_a_worker_has_time_for_its_job_and_a_start_has_time_for_the_weights(self):
        worker = find(render({"worker.drainSeconds": "900", "worker.startupSeconds": "601"}), "Deployment", "-worker")
        pod = worker["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        self.assertEqual(pod["terminationGracePeriodSeconds"], 960)
        self.assertIn("--drain-seconds=900", container["args"])
        probe = container["startupProbe"]
        self.assertGreaterEqual(probe["failureThreshold"] * probe["periodSeconds"], 601)
        self.assertEqual(probe["httpGet"]["path"], "/readyz")
        self.assertEqual(container["livenessProbe"]["httpGet"]["path"], "/healthz")
        self.assertEqual(worker["spec"]["strategy"]["rollingUpdate"], {"maxSurge": 0, "maxUnavailable": 1})

    def test_devices_are_asked_for_and_can_be_left_out(self):
        with_gpu = find(render({}), "Deployment", "-worker")["spec"]["template"]["spec"]
        self.assertEqual(with_gpu["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], 1)
        self.assertEqual(with_gpu["tolerations"][0]["key"], "nvidia.com/gpu")
        without = find(render(ON["cpu"]), "Deployment", "-worker")["spec"]["template"]["spec"]
        self.assertNotIn("nvidia.com/gpu", without["containers"][0]["resources"]["limits"])
        self.assertNotIn("tolerations", without)

    def test_passwords_are_named_and_never_rendered(self):
        for values, host in (
            ({"redis.existingSecret": "mine"}, "clips-merope-redis:6379"),
            ({**ON["external redis"], "externalRedis.existingSecret": "mine", "externalRedis.port": "6380"}, "redis.example:6380"),
        ):
            documents = render(values)
            for part in ("-server", "-worker"):
                (container,) = find(documents, "Deployment", part)["spec"]["template"]["spec"]["containers"]
                environment = {entry["name"]: entry for entry in container["env"]}
                self.assertEqual(environment["MEROPE_REDIS_URL"]["value"], f"redis://:$(REDIS_PASSWORD)@{host}")
                self.assertEqual(
                    environment["REDIS_PASSWORD"]["valueFrom"]["secretKeyRef"], {"name": "mine", "key": "password"}
                )
        self.assertFalse(any(document["kind"] == "Secret" for document in documents))

    def test_the_programs_take_the_arguments(self):
        documents = render({"server.maxQueuedJobs": "1000000", "worker.leaseSeconds": "12", "server.extraArgs[0]": "--max-frames=81"})
        clean = {key: value for key, value in os.environ.items() if not key.startswith("MEROPE_")}
        for part in ("server", "worker"):
            (container,) = find(documents, "Deployment", f"-{part}")["spec"]["template"]["spec"]["containers"]
            program = BIN / f"merope-{part}"
            with self.subTest(part):
                if not program.exists():
                    print(f"[  SKIPPED ] arguments of merope-{part}: it is not built")
                    continue
                url = {"MEROPE_REDIS_URL": next(e["value"] for e in container["env"] if e["name"] == "MEROPE_REDIS_URL")}
                result = subprocess.run(
                    [str(program), *container["args"], "--print-config"],
                    capture_output=True, text=True, check=False, env={**clean, **url}, timeout=60,
                )
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn('redis-url = "redis://clips-merope-redis:6379"  # environment', result.stdout)
                flag = {"server": 'max-queued-jobs = "1000000"', "worker": 'lease-seconds = "12"'}[part]
                self.assertRegex(result.stdout, flag + "  # flag")

    def test_values_that_do_not_fit_are_refused_with_their_path(self):
        cases = [
            ({"server.replicas": "-1"}, "/server/replicas"),
            ({"server.prot": "1"}, "'prot' not allowed"),
            ({"server.port": "70000"}, "/server/port"),
            ({"worker.device": "gpu"}, "/worker/device"),
            ({"worker.gpu.count": "two"}, "/worker/gpu/count"),
            ({"worker.model.path": "/abs"}, "/worker/model/path"),
            ({"worker.extraArgs[0]": "rm"}, "/worker/extraArgs/0"),
            ({"worker.resources.limits.memory": "lots"}, "/worker/resources/limits/memory"),
            ({"redis.maxMemory": "4 gigabytes"}, "/redis/maxMemory"),
            ({"keda.prometheusAddress": "prometheus"}, "/keda/prometheusAddress"),
            ({"logLevel": "loud"}, "/logLevel"),
            ({"worker.model.existingClaim": ""}, "worker.model.existingClaim or worker.model.hostPath is needed"),
            ({"redis.enabled": "false"}, "externalRedis.host is needed"),
        ]
        for values, says in cases:
            with self.subTest(values):
                result = helm("template", "clips", str(CHART), values={**MODEL, **values})
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(says, result.stderr)

    def test_every_value_has_its_place_in_the_schema(self):
        schema = yaml.safe_load((CHART / "values.schema.json").read_text())

        def check(value, node, path):
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node
            if isinstance(value, dict) and "properties" in node:
                self.assertFalse(node.get("additionalProperties", True), f"{path}: takes misspelt names")
                for key, inner in value.items():
                    self.assertIn(key, node["properties"], path)
                    check(inner, node["properties"][key], f"{path}.{key}")

        check(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "values")


class FilesTest(unittest.TestCase):
    def test_compose_and_images_belong_together(self):
        compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
        self.assertEqual(set(compose["services"]), {"redis", "server", "worker", "worker-cuda"})
        self.assertEqual(compose["services"]["redis"]["command"].count("noeviction"), 1)
        for name, service in compose["services"].items():
            if "build" not in service:
                continue
            dockerfile = (ROOT / service["build"]["dockerfile"]).read_text()
            with self.subTest(name):
                self.assertRegex(dockerfile, r"(?m)^USER 10001:10001$")
                program = "merope-server" if name == "server" else "merope-worker"
                self.assertIn(f'ENTRYPOINT ["/opt/merope/bin/{program}"]', dockerfile)
                self.assertIn(f"--component {program}", dockerfile)
                mounted = [volume.split(":")[0] for volume in service["volumes"] if volume.startswith("./")]
                for path in mounted:
                    self.assertTrue((ROOT / "deploy" / path).is_file(), path)


if __name__ == "__main__":
    del sys.argv[1:3]
    unittest.main()
