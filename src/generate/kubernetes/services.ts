import type { Tree, TreeMap } from "../base/document.js";
import { monitoringPort } from "./container.js";
import { labelsOf, metadataOf } from "./labels.js";
import type { ValueSource } from "./value-source.js";

/** For proxies that learn a Service's pods themselves, and for scraping. */
export function service(source: ValueSource): TreeMap {
  const name = "monitoring";
  const monitoring = { name, port: monitoringPort, targetPort: name, appProtocol: "http" };
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadataOf(source),
    spec: { selector: labelsOf(source), ports: [...grpcPorts(source), monitoring] },
  };
}

/** For an Envoy by itself, whose name for it resolves to the pods. */
export function podsService(source: ValueSource): TreeMap {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadataOf(source, "@-pods"),
    spec: { clusterIP: "None", selector: labelsOf(source), ports: grpcPorts(source) },
  };
}

/** The same number as in the pods: a name that resolves to pods knows no other. */
function grpcPorts(source: ValueSource): readonly Tree[] {
  return [
    {
      name: "grpc",
      port: source.number("ports.grpc"),
      targetPort: "grpc",
      appProtocol: "grpc",
    },
    ...source.listIf({ name: "controlPort.enabled" }, [
      {
        name: "control",
        port: source.number("ports.control"),
        targetPort: "control",
        appProtocol: "grpc",
      },
    ]),
  ];
}
