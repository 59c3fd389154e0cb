/** Namespace whose objects hold for the whole mesh, and where its gateways are by default. */
export const istioRootNamespace = "istio-system";

/** Labels of the pods of Istio's own gateway. */
export const istioGatewayLabels: Readonly<Record<string, string>> = { istio: "ingressgateway" };
