/**
 * What stands in for the program `helm` where only Helm's own library is there, as a wheel carries
 * it: of `version`, `lint` and `template` what a chart's test needs, over the same code in Go.
 */
export const helmLauncher = `import argparse
import sys
import helm_python as helm

parser = argparse.ArgumentParser(prog="helm")
commands = parser.add_subparsers(dest="command", required=True)
commands.add_parser("version").add_argument("--short", action="store_true")
lint = commands.add_parser("lint")
lint.add_argument("chart")
lint.add_argument("--strict", action="store_true")
template = commands.add_parser("template")
template.add_argument("name")
template.add_argument("chart")
template.add_argument("--kube-version")
for command in (lint, template):
    command.add_argument("--namespace", default="default")
    command.add_argument("--values", action="append", default=[])
given = parser.parse_args()


def values():
    merged = {}
    for path in given.values:
        with open(path, encoding="utf-8") as file:
            merged.update(helm.values_from_yaml(file.read()))
    return merged


def run():
    if given.command == "version":
        print(helm.helm_sdk_version())
        return 0
    if given.command == "lint":
        report = helm.lint(given.chart, values(), strict=given.strict, namespace=given.namespace)
        worst = 0
        for message in report["messages"]:
            worst = max(worst, message["severity"])
            print("{path}: {error}".format(**message))
        # 2 is a warning, 3 an error.
        return 1 if worst >= (2 if given.strict else 3) or report["errors"] else 0
    with helm.Chart.load(given.chart) as chart:
        rendered = chart.render(values(), name=given.name, namespace=given.namespace)
    for path, text in rendered.items():
        if not path.endswith("NOTES.txt") and text.strip() != "":
            print("---\\n# Source: {}\\n{}".format(path, text))
    return 0


try:
    sys.exit(run())
except helm.HelmError as error:
    print("Error: {}".format(error), file=sys.stderr)
    sys.exit(1)
`;
