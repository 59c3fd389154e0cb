import { describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { ProblemLog } from "../../../../src/policy/problems/problem-log.js";
