import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, it } from "vitest";
import { LimitService } from "../../src/gen/headgate/admin/v1/admin_pb.js";
import { startAdminApp } from "../support/admin.js";
import { TestAuthority } from "../support/certificates.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
`;

it("knows people beyond this machine by their certificates", async () => {
  const authority = new TestAuthority();
  const file = async (name: string, text: string): Promise<string> => {
    const path = join(stage.folder, name);
    await writeFile(path, text);
    return path;
  };
  const server = authority.issue({ names: ["localhost"] });
  const { port } = await startAdminApp(stage, policy, {
    HEADGATE_ADMIN_ADDR: "0.0.0.0:0",
    HEADGATE_ADMIN_ACCESS: await file("access", "reader * certificate:spiffe://shop/ann ann\n"),
    GRPC_SERVER_USE_TLS: "true",
    GRPC_SERVER_TLS_CERT: await file("cert.pem", server.certificate),
    GRPC_SERVER_TLS_KEY: await file("key.pem", server.key),
    GRPC_CLIENT_TLS_CACERT: await file("ca.pem", authority.certificate),
  });
  const clientOf = (name: string) => {
    const { certificate: cert, key } = authority.issue({ uris: [name] });
    const nodeOptions = { ca: authority.certificate, cert, key };
    const transport = createGrpcTransport({ baseUrl: `https://localhost:${port}`, nodeOptions });
    return createClient(LimitService, transport);
  };
  const ann = clientOf("spiffe://shop/ann");
  expect((await ann.listRules({})).rules).toHaveLength(1);
  await expect(ann.deleteOverride({})).rejects.toMatchObject({ code: Code.PermissionDenied });
  const ben = clientOf("spiffe://shop/ben");
  await expect(ben.listRules({})).rejects.toMatchObject({ code: Code.Unauthenticated });
});
