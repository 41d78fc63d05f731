"""What `deploy/test-kubernetes` asks of rendered manifests: whether each is valid, and what a schema cannot say. Prints parts of
them for the script. Needs kubernetes-validate; knows nothing of a cluster."""

import sys

import kubernetes_validate
import yaml

RESTRICTED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
# Kinds of KEDA have no schema among those of Kubernetes.
UNKNOWN = {"ScaledJob", "TriggerAuthentication"}
USER = 10001  # of the images: deploy/Containerfile


def documents(path):
    with open(path, encoding="utf-8") as file:
        return [document for document in yaml.safe_load_all(file) if document]


def template(document):
    spec = document.get("spec", {})
    return spec.get("template") or spec.get("jobTargetRef", {}).get("template")


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def option(args, name):
    return args[args.index(name) + 1] if name in args else None


def complaints(documents):
    labels = []
    for document in documents:
        if document["kind"] not in UNKNOWN:
            try:
                kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
            except kubernetes_validate.ValidationError as error:
                yield f"{document['kind']}: {error.message}"
        if document["kind"] == "PodDisruptionBudget":
            yield "a budget would block drains"
        if template(document):
            labels.append(template(document)["metadata"]["labels"])
            yield from (f"{document['kind']} {document['metadata']['name']}: {what}" for what in of_pods(document))
    for document in documents:
        selector = document.get("spec", {}).get("selector") or document.get("spec", {}).get("podSelector") or {}
        wanted = selector.get("matchLabels", {} if "matchExpressions" in selector else selector)
        if wanted and not any(wanted.items() <= have.items() for have in labels):
            yield f"{document['kind']} {document['metadata']['name']} selects no pod of ours"


def of_pods(document):
    pod = template(document)["spec"]
    context = pod.get("securityContext", {})
    if (context.get("runAsNonRoot"), context.get("runAsUser")) != (True, USER):
        yield "it does not run as the user of the images"
    if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "no seccomp profile"
    if pod.get("automountServiceAccountToken") is not False:
        yield "it has a token of the cluster"
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    volumes |= {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])}
    for container in containers(pod):
        if container.get("securityContext") != RESTRICTED:
            yield f"{container['name']} is not restricted"
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                yield f"{container['name']} mounts {mount['name']}, which is no volume"
        if "memory" not in container.get("resources", {}).get("limits", {}):
            yield f"{container['name']} may take all memory"
        grace = option(container.get("args", []), "--grace")
        if grace and int(grace) + 10 > pod["terminationGracePeriodSeconds"]:
            yield "pods are killed before their folds have saved"
    if document["kind"] in ("Job", "ScaledJob"):
        yield from of_jobs(document["spec"].get("jobTargetRef", document["spec"]), pod)


def of_jobs(job, pod):
    if pod.get("restartPolicy") != "Never":
        yield "a failure policy needs restartPolicy: Never"
    rules = job["podFailurePolicy"]["rules"]
    ignored = [rule["onExitCodes"]["values"] for rule in rules if rule["action"] == "Ignore" and "onExitCodes" in rule]
    stopped = option(pod["containers"][0]["args"], "--stopped-exit")
    if stopped in (None, "0") or not any(int(stopped) in values for values in ignored):
        yield "a worker that is told to leave counts as one that is done or has failed"
    if not any("onPodConditions" in rule and rule["action"] == "Ignore" for rule in rules):
        yield "preemption counts as failure"


def pod_of(path, name):
    for document in documents(path):
        for container in containers(template(document)["spec"]) if template(document) else []:
            if container["name"] == name:
                return container
    sys.exit(f"{path} has no container {name}")


def main(verb, path, *more):
    if verb == "manifest":
        found = list(complaints(documents(path)))
        print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
        sys.exit(1 if found else 0)
    lines = {
        "script": lambda: pod_of(path, "begin")["args"],
        "args": lambda: pod_of(path, more[0])["args"],
        "probe": lambda: pod_of(path, "coordinator")[more[0]]["exec"]["command"],
    }
    print(*lines[verb](), sep="\n")


main(*sys.argv[1:])
