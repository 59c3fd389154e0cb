import type { Block } from "../text/block.js";
import { flag, whole, words } from "../text/form.js";
import { field, inner, object, type Values } from "../text/object.js";
import { cookieName, host, plainPath } from "../text/service-texts.js";

const addressBits = object(
  { title: "addressBits", docs: "Leading bits of the caller's address that a ticket is bound to." },
  {
    v4: field(whole({ min: 8, max: 32 }), "For IPv4 addresses.", {
      larger: "stricter",
      default: 24,
    }),
    v6: field(whole({ min: 16, max: 128 }), "For IPv6 addresses.", {
      larger: "stricter",
      default: 56,
    }),
  },
);

const rows = {
  name: field(cookieName, "The name of the cookie. Default: `headgate-` and the room's name."),
  domain: field(
    host,
    "The domain of the cookie, which all hosts of the room lie in. Default: the host alone.",
  ),
  path: field(plainPath, "The path below which browsers send the cookie.", { default: "/" }),
  sameSite: field(words("lax", "strict", "none"), "The SameSite attribute of the cookie.", {
    default: "lax",
  }),
  secure: field(
    flag,
    "Whether browsers send the cookie over TLS only. Set false for a site without TLS, where " +
      "visitors would never get in.",
    { as: "isSecure", default: true },
  ),
  addressBits: field(
    inner(addressBits),
    "Binds tickets to a prefix of the caller's address. A visitor whose address changes has to " +
      "join again. Default: not bound.",
    { added: "stricter" },
  ),
};

type ReadCookie = Values<typeof rows>;

/** `cookie` of a waiting room. */
export const roomCookie = object(
  { title: "a cookie of a room", docs: "The cookie of tickets and sessions." },
  rows,
  {
    data: (read) => read,
    check(block, _, read) {
      refuseUnsafe(block, read);
      refusePrefix(block, read);
    },
  },
);

/** Reports a cookie that browsers drop. Source: RFC 6265bis section 5.7. */
function refuseUnsafe(block: Block, { sameSite, isSecure }: ReadCookie): void {
  if (sameSite !== "none" || isSecure) return;
  const message = "browsers drop a cookie with SameSite=None that is not Secure";
  block.report("sameSite", { id: "HG279", message, expected: "secure: true, or sameSite: lax" });
}

/** Reports a name whose prefix is not met. Source: RFC 6265bis section 4.1.3. */
function refusePrefix(block: Block, { name = "", domain, path, isSecure }: ReadCookie): void {
  const lower = name.toLowerCase();
  const isHost = lower.startsWith("__host-");
  const isWrong = isHost && (domain !== undefined || path !== "/");
  if (!isWrong && (isSecure || !(isHost || lower.startsWith("__secure-")))) return;
  const expected = isHost ? "secure: true, path: / and no domain" : "secure: true";
  const message = "browsers drop a cookie whose name promises what its attributes do not have";
  block.report("name", { id: "HG279", message, expected });
}
