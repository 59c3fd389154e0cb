import type { PermitHolder } from "../../src/core/admission/permit-share.js";
import { Permits } from "../../src/core/admission/permits.js";

/** One replica's requests under a limit of the fleet, as a test moves them. */
export class TestHolder implements PermitHolder {
  readonly name: string;
  readonly permits = new Permits();
  /** Known to this replica alone, as a policy that reaches replicas one by one is. */
  limit: number;

  constructor(name: string, limit: number) {
    this.name = name;
    this.limit = limit;
  }

  fleetLimit(): number {
    return this.limit;
  }

  inUseCount(): number {
    return this.permits.inUseCount;
  }

  /** How often more was let in use. */
  grownCount = 0;

  shareGrew(): void {
    this.grownCount += 1;
  }

  /** Takes a permit if fewer than that are in use, and says whether it did. */
  take(limit: number): boolean {
    const isFree = this.permits.inUseCount < limit;
    if (isFree) this.permits.take("normal");
    else this.permits.noteRefused("normal");
    return isFree;
  }

  giveBack(): void {
    this.permits.giveBack("normal");
  }

  takeDemand(): number {
    return this.permits.takeDemand();
  }
}
