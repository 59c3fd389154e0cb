import { describe, expect, it } from "vitest";
import type { Tree } from "../../../../src/generate/base/document.js";
import { renderDocument } from "../../../../src/generate/base/render.js";
import {
  TemplateSource,
  templateText,
  wrapTemplate,
} from "../../../../src/generate/kubernetes/template-source.js";

const source = new TemplateSource();

/** The lines of a template, below its first comment. */
function linesOf(tree: Tree): readonly string[] {
  const yaml = renderDocument(
    { path: "x.yaml", kind: { format: "yaml", is: "kubernetes" }, title: "", parts: [tree] },
    { target: "kubernetes", policy: { name: "p", hash: "0" } },
  );
  return templateText(yaml).trimEnd().split("\n").slice(2);
}

describe("templateText()", () => {
  it("puts Helm's words where values stand, quoted where they are texts", () => {
    const tree = {
      name: source.text("name", "@-pods"),
      image: source.joined("@:@", ["image.repository", "image.tag"]),
      port: source.number("ports.grpc"),
      memory: source.half("memoryMi", "@Mi"),
      seconds: source.seconds(["drain.delayMs"], 15),
    };
    expect(linesOf(tree)).toEqual([
      'name: {{ printf "%s-pods" (toString .Values.name) | quote }}',
      `image: {{ printf "%s:%s" ${["repository", "tag"]
        .map((name) => `(toString .Values.image.${name})`)
        .join(" ")} | quote }}`,
      "port: {{ int .Values.ports.grpc }}",
      'memory: {{ printf "%dMi" (div (int .Values.memoryMi) 2) | quote }}',
      "seconds: {{ add (div (add (int .Values.drain.delayMs) 999) 1000) 15 }}",
    ]);
  });

  it("gives conditions lines of their own, as deep as what they are about", () => {
    const tree = {
      list: ["a", ...source.listIf({ name: "redis.enabled" }, ["b"])],
      map: { c: 1, ...source.mapIf({ name: "tls.enabled", isNot: true }, { d: 2 }) },
    };
    expect(linesOf(tree)).toEqual([
      "list:",
      "  - a",
      "  {{- if .Values.redis.enabled }}",
      "  - b",
      "  {{- end }}",
      "map:",
      "  c: 1",
      "  {{- if not .Values.tls.enabled }}",
      "  d: 2",
      "  {{- end }}",
    ]);
  });

  it("indents maps and lists by where they stand", () => {
    const tree = {
      data: source.collection("policy"),
      rules: [{ matchLabels: source.collection("redis.podLabels") }],
      env: ["a", ...source.itemsOf("extraEnv")],
      notes: { b: 1, ...source.entriesOf("podAnnotations") },
    };
    expect(linesOf(tree)).toEqual([
      "data:",
      "  {{- toYaml .Values.policy | nindent 2 }}",
      "rules:",
      "  - matchLabels:",
      "      {{- toYaml .Values.redis.podLabels | nindent 6 }}",
      "env:",
      "  - a",
      "  {{- if .Values.extraEnv }}",
      "  {{- toYaml .Values.extraEnv | nindent 2 }}",
      "  {{- end }}",
      "notes:",
      "  b: 1",
      "  {{- if .Values.podAnnotations }}",
      "  {{- toYaml .Values.podAnnotations | nindent 2 }}",
      "  {{- end }}",
    ]);
  });
});

describe("wrapTemplate()", () => {
  it("makes a whole object depend on a switch", () => {
    expect(wrapTemplate("a: 1\n", undefined)).toBe("a: 1\n");
    expect(wrapTemplate("a: 1\n", { name: "autoscaling.enabled" })).toBe(
      "{{- if .Values.autoscaling.enabled }}\na: 1\n{{- end }}\n",
    );
  });
});
