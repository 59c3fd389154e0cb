import {
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { PutQuestion, ReplicaQuestion } from "../../fleet/claims/replica-questions.js";
import { callerOf } from "./call.js";
import type { AdminServiceParts } from "./service-parts.js";

/** How long others have to answer, in milliseconds: four of their looks. */
const answerMsMax = 1_000;

/** How often it is looked whether they have, in milliseconds. */
const takeEveryMs = 50;

/** What the other replicas answered. */
export interface Others<O extends DescMessage> {
  readonly messages: readonly MessageShape<O>[];
  /** How many did not answer in time. */
  readonly silentReplicas: number;
}

/**
 * Asks all other live replicas the same, for the same caller. Who cannot be asked is silent.
 *
 * @param request what was asked of this replica
 */
export async function askOthers<I extends DescMessage, O extends DescMessage>(
  { replicas, clock }: Pick<AdminServiceParts, "replicas" | "clock">,
  method: DescMethodUnary<I, O>,
  { request, context }: { readonly request: MessageShape<I>; readonly context: HandlerContext },
): Promise<Others<O>> {
  const otherCount = (replicas?.liveCount() ?? 1) - 1;
  if (replicas === undefined || otherCount <= 0) return { messages: [], silentReplicas: 0 };
  const answers = new Map<string, MessageShape<O>>();
  let question: PutQuestion | undefined;
  try {
    question = await replicas.put(questionOf(method, request, context));
    const endMs = clock.monotonicMs() + answerMsMax;
    while (answers.size < otherCount && clock.monotonicMs() < endMs) {
      await new Promise<void>((resolve) => void clock.schedule(takeEveryMs, resolve));
      for (const { replica, body } of await question.take()) {
        answers.set(replica, fromBinary(method.output, body));
      }
    }
  } catch {
    // What is known here is better than nothing; how many are missing is said.
  } finally {
    await question?.close();
  }
  const silentReplicas = Math.max(0, otherCount - answers.size);
  return { messages: [...answers.values()], silentReplicas };
}

/** What is put to other replicas for a request: they answer for themselves alone. */
export function questionOf<I extends DescMessage>(
  method: { readonly name: string; readonly input: I },
  request: MessageShape<I>,
  context: HandlerContext,
): ReplicaQuestion {
  const alone = { ...request, thisReplica: true };
  const { name, grants } = callerOf(context);
  return {
    method: method.name,
    request: toBinary(method.input, alone),
    // Without domains it is for all of them.
    caller: {
      name,
      grants: grants.map(({ role, domains }) => (domains ? { role, domains } : { role })),
    },
  };
}
