import type { ParsedNode } from "yaml";
import type { Block } from "../text/block.js";
import type { NodeReader } from "../text/node-reader.js";
import type { PlacedValue } from "../text/object.js";
import type { WrittenAmount } from "./amount.js";
import type { BudgetPolicy, ServiceUsage } from "./budget-policy.js";

/** A budget as it was read; its unit may be known by another file. */
export interface BudgetDraft {
  readonly budget: Omit<BudgetPolicy, "unit" | "amount" | "overrides">;
  readonly block: Block;
  readonly amount: PlacedValue<WrittenAmount>;
  readonly overrides: readonly {
    readonly values: readonly string[];
    readonly amount: PlacedValue<WrittenAmount>;
  }[];
  readonly serviceNodes: readonly ParsedNode[];
}

/** A service whose usage is measured, and where it says so. */
export interface MeasuredService {
  readonly name: string;
  readonly usage: ServiceUsage;
  readonly node: ParsedNode;
  readonly reader: NodeReader;
}
