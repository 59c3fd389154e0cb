import { bytes, duration, number, whole, words } from "../text/form.js";
import { field, inner, object } from "../text/object.js";
import { type NumberBounds, positiveRatioBounds } from "../text/quantities.js";
import { thresholdBounds } from "../upstream/circuit-breakers.js";

/** Minimum memory in which an Envoy could run. */
export const memoryBytesMin = 16 * 2 ** 20;

/** Maximum: more than any machine has. */
export const memoryBytesMax = 2 ** 44;

const memoryBounds: NumberBounds = { min: memoryBytesMin, max: memoryBytesMax };

const cpu = object(
  { title: "a cpu", docs: "Refuses requests by CPU usage." },
  {
    of: field(words("host", "container"), "Which CPU usage counts.", { default: "container" }),
    shedFrom: field(
      number(positiveRatioBounds),
      "Usage from which some new requests are refused.",
      { larger: "looser", as: "shedFromRatio", default: 0.85 },
    ),
    shedAllAt: field(
      number(positiveRatioBounds),
      "Usage from which all new requests are refused.",
      {
        larger: "looser",
        as: "shedAllAtRatio",
        default: 0.98,
      },
    ),
  },
  {
    data: (read) => read,
    check(block, { shedFromRatio, shedAllAtRatio }) {
      if (shedFromRatio < shedAllAtRatio) return;
      const message = `some are refused from ${shedFromRatio}, and all from ${shedAllAtRatio}`;
      block.refuseOrder(["shedFrom", "shedAllAt"], message, "shedFrom below shedAllAt");
    },
  },
);

const cgroupMemory = object(
  {
    title: "a cgroupMemory",
    docs: "Refuses by the memory of the proxy's control group.",
  },
  {
    max: field(
      bytes(memoryBounds),
      "The memory that counts as full. Default: the control group's limit.",
      {
        larger: "looser",
        as: "bytesMax",
      },
    ),
    stopAcceptingAt: field(
      number(positiveRatioBounds),
      "Usage from which no requests are accepted.",
      {
        larger: "looser",
        as: "stopAcceptingAtRatio",
        default: 0.95,
      },
    ),
  },
);

const heapNames = ["shrinkHeapAt", "shedFrom", "stopAcceptingAt"] as const;

/** `proxies.overload`. */
export const proxyOverload = object(
  { title: "an overload", docs: "Envoy's overload manager. Default: not configured." },
  {
    // Envoy does not check more often, and less than once a minute would not protect.
    refreshInterval: field(duration({ minMs: 10, maxMs: 60_000 }), "The interval between checks.", {
      larger: "different",
      as: "refreshMs",
      default: 250,
    }),
    maxHeap: field(
      bytes(memoryBounds),
      "The heap size that counts as full, such as 512Mi. Default: the heap is not watched.",
      { larger: "looser", as: "bytesMax" },
    ),
    shrinkHeapAt: field(
      number(positiveRatioBounds),
      "Ratio of the heap from which Envoy releases free memory.",
      { larger: "different", as: "shrinkAtRatio", default: 0.85 },
    ),
    shedFrom: field(
      number(positiveRatioBounds),
      "Ratio of the heap from which some requests are refused.",
      { larger: "looser", as: "shedFromRatio", default: 0.9 },
    ),
    stopAcceptingAt: field(
      number(positiveRatioBounds),
      "Ratio of the heap from which no requests are accepted.",
      { larger: "looser", as: "stopAcceptingAtRatio", default: 0.95 },
    ),
    maxConnections: field(
      whole(thresholdBounds),
      "Maximum downstream connections of the process.",
      {
        larger: "looser",
        as: "connectionsMax",
      },
    ),
    cpu: field(inner(cpu), "Refuses by CPU usage. Default: off."),
    cgroupMemory: field(
      inner(cgroupMemory),
      "Refuses by the control group's memory. Default: off.",
    ),
  },
  {
    data: ({ bytesMax, shrinkAtRatio, shedFromRatio, stopAcceptingAtRatio, ...rest }) => {
      const heap = bytesMax && { bytesMax, shrinkAtRatio, shedFromRatio, stopAcceptingAtRatio };
      return { ...rest, heap: heap || undefined };
    },
    check(block, _, { shrinkAtRatio, shedFromRatio, stopAcceptingAtRatio }) {
      if (shrinkAtRatio > shedFromRatio || shedFromRatio >= stopAcceptingAtRatio) {
        const ratios = `${shrinkAtRatio}, ${shedFromRatio} and ${stopAcceptingAtRatio}`;
        const expected = "shrinkHeapAt at most shedFrom, and shedFrom below stopAcceptingAt";
        block.refuseOrder(heapNames, `${ratios} do not rise`, expected);
      }
      if (!block.isLeftOut("maxHeap")) return;
      for (const name of heapNames.filter((each) => block.field(each) !== undefined)) {
        const message = `"${name}" is a ratio of the heap, and the heap size is not set`;
        block.report(name, { id: "HG207", message, expected: "maxHeap, such as 512Mi" });
      }
    },
  },
);

/** Envoy's overload manager. Source: envoy.config.overload.v3.OverloadManager. */
export type OverloadPolicy = typeof proxyOverload.defaults;

/** Ratios of the heap's maximum size. */
export type HeapOverload = NonNullable<OverloadPolicy["heap"]>;

/** Ratios of the control group's memory. */
export type CgroupOverload = typeof cgroupMemory.defaults;
