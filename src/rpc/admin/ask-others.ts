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

/** How long to wait for other replicas, in milliseconds: four of their polling intervals. */
const answerMsMax = 1_000;

/** How often to poll for answers, in milliseconds. */
const takeEveryMs = 50;

/** The answers of the other replicas. */
export interface Others<O extends DescMessage> {
  readonly messages: readonly MessageShape<O>[];
  /** How many did not answer in time. */
  readonly silentReplicas: number;
}

/**
 * Forwards a request to all other live replicas, on behalf of the same caller, unless it is for
 * this replica only. Replicas that cannot be reached count as silent.
 *
 * @param request the request to this replica
 */
export async function askOthers<I extends DescMessage, O extends DescMessage>(
  { replicas, clock }: Pick<AdminServiceParts, "replicas" | "clock">,
  method: DescMethodUnary<I, O>,
  {
    request,
    context,
  }: {
    readonly request: MessageShape<I> & { readonly thisReplica: boolean };
    readonly context: HandlerContext;
  },
): Promise<Others<O>> {
  const otherCount = request.thisReplica ? 0 : (replicas?.liveCount() ?? 1) - 1;
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
    // The answer of this replica is better than none; the caller learns how many are missing.
  } finally {
    await question?.close();
  }
  const silentReplicas = Math.max(0, otherCount - answers.size);
  return { messages: [...answers.values()], silentReplicas };
}

/** The form of a request for other replicas: each one answers for itself only. */
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
    // No domains means all domains.
    caller: {
      name,
      grants: grants.map(({ role, domains }) => (domains ? { role, domains } : { role })),
    },
  };
}
