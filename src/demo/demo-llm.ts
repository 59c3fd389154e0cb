import type { Style } from "../app/base/style.js";
import type { Clock } from "../core/base/clock.js";
import { assert } from "../core/base/errors.js";
import { type Running, renderBanner, renderCallModel } from "./demo-banner.js";
import type { DemoOptions } from "./demo-options.js";
import { isLineDue } from "./demo-report.js";
import { type DemoScope, everySecond } from "./demo-scope.js";
import { LlmCallers, llmUsers } from "./llm/llm-callers.js";
import { FakeModel } from "./llm/llm-model.js";
import { LlmReport } from "./llm/llm-report.js";

interface ShownCalls {
  readonly options: DemoOptions;
  readonly scope: DemoScope;
  readonly style: Style;
  readonly print: (text: string) => void;
  readonly clock: Clock;
  readonly running: Running;
}

/** Shows calls of a language model, their outcomes, and the reasons. */
export async function showCalls(shown: ShownCalls): Promise<void> {
  const { options, scope, style, print, clock, running } = shown;
  assert(running.envoy.kind === "running", "the model is not shown without an Envoy");
  print(renderBanner(running, style));
  print(renderCallModel(running, style));
  if (options.traffic === "none") return;
  const { policyPath } = running;
  const report = new LlmReport({ users: llmUsers, style, print, policyPath });
  const callers = new LlmCallers({
    clock,
    port: running.envoy.ports.envoy,
    ended: (user, end) => report.note(user, end),
  });
  await scope.add(() => callers.stop());
  if (options.traffic === "shown") {
    report.printHead();
    everySecond(clock, scope, (seconds) => {
      if (isLineDue(seconds)) report.printLine(seconds);
    });
  }
  callers.start(llmUsers);
}

/** The running models. */
interface RunningModels {
  readonly port: number;
  /** Port of the model that calls fall back to. */
  readonly cheaperPort: number;
  close(): void;
}

/**
 * Starts the model that users request, and the cheaper one.
 *
 * @throws ServiceError LISTEN_FAILED
 */
export async function startModels(
  clock: Clock,
  place: { readonly port: number; readonly portSetting: string },
): Promise<RunningModels> {
  const pace = { firstMs: 200, everyMs: 15, outputTokens: 60 };
  const asked = new FakeModel({ clock, pace });
  const cheaper = new FakeModel({ clock, pace, model: "small-1" });
  return {
    port: await asked.listen(place.port, place.portSetting),
    cheaperPort: await cheaper.listen(0, place.portSetting),
    close: () => {
      asked.close();
      cheaper.close();
    },
  };
}
