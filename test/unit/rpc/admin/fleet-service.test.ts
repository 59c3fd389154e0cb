import { create } from "@bufbuild/protobuf";
import {
  createContextValues,
  createHandlerContext,
  type HandlerContext,
} from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import type { Principal } from "../../../../src/core/base/access-list.js";
import { auditEntry } from "../../../../src/core/base/audit-entry.js";
import { InProcessRecords } from "../../../../src/fleet/records/in-process-records.js";
import {
  FleetService,
  ListAuditRequestSchema,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";
import { adminCallKey } from "../../../../src/rpc/admin/call.js";
import { auditScannedMax, fleetService } from "../../../../src/rpc/admin/fleet-service.js";
import { FakeClock } from "../../../support/fake-clock.js";

function contextOf(principal: Principal): HandlerContext {
  const call = { principal, isStillAllowed: async () => true, onRead: () => {}, onEnd: () => {} };
  return createHandlerContext({
    service: FleetService,
    method: FleetService.method.listAudit,
    protocolName: "test",
    requestMethod: "POST",
    url: "http://localhost",
    contextValues: createContextValues().set(adminCallKey, call),
  });
}

describe("ListAudit", () => {
  it("looks at so many entries a call, and goes on where it ended", async () => {
    const records = new InProcessRecords(new FakeClock());
    const fields = { action: "ResetKey", subject: "x", before: undefined, after: undefined };
    const note = (name: string, domain: string) =>
      records.note(
        auditEntry({
          ...fields,
          actor: { name, role: "operator" },
          domain,
          reason: "because",
          replica: "r",
        }),
      );
    await note("ann", "shop");
    for (let i = 0; i < auditScannedMax; i += 1) await note("ben", "pay");
    const unused = { fleet: { fleet: () => never(), services: () => [] } };
    const service = fleetService({ clock: new FakeClock(), replica: "r", records, ...unused });
    const context = contextOf({ name: "eve", grants: [{ role: "reader", domains: ["shop"] }] });
    const list = async (pageToken: string) => {
      const request = create(ListAuditRequestSchema, { pageToken });
      return service.listAudit(request, context);
    };
    const first = await list("");
    expect(first.entries).toEqual([]);
    const second = await list(first.nextPageToken ?? "");
    expect(second.entries).toMatchObject([{ author: "ann", domain: "shop", number: 1n }]);
    expect((await list(second.nextPageToken || "p1")).entries).toEqual([]);
    await expect(list("pnonsense")).rejects.toThrow("page_token");
  });
});

function never(): never {
  throw new Error("nobody asks for it");
}
