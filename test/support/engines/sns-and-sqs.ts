import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';

/** How long a second of SQS takes, in milliseconds, so that tests do not wait for whole seconds. */
const SECOND_MS = 20;
/** The seconds for which a message that was received is hidden from others, as in SQS by default. */
const VISIBILITY_TIMEOUT = 30;

interface Call {
  readonly abortSignal?: AbortSignal;
}

interface Stored {
  readonly MessageId: string;
  readonly Body: string;
  readonly group: string;
  readonly code: string | undefined;
  visibleAt: number;
  receives: number;
}

/** The part of Amazon SNS and SQS with FIFO queues that `docs/engines.md` uses, in the process of the test. */
export class SnsAndSqs {
  /** Whether every call is rejected. */
  isDown = false;
  readonly #queues = new Map<string, Stored[]>();

  /** Creates the queue of a service, which gets the messages of the topic, and its queue for dead letters. */
  createQueues(topic: string, service: string): void {
    for (const url of [`${topic}.${service}`, `${topic}-dead.${service}`]) {
      if (!this.#queues.has(url)) this.#queues.set(url, []);
    }
  }

  messages(url: string): readonly Pick<Stored, 'Body' | 'code'>[] {
    return this.#queues.get(url) ?? [];
  }

  async publish(
    input: { readonly TopicArn: string; readonly Message: string; readonly MessageGroupId: string },
    call: Call = {},
  ): Promise<void> {
    this.#check(call);
    for (const url of this.#queues.keys()) {
      if (!url.startsWith(`${input.TopicArn}.`)) continue;
      this.add(url, input.Message, input.MessageGroupId);
    }
  }

  async sendMessage(input: {
    readonly QueueUrl: string;
    readonly MessageBody: string;
    readonly MessageGroupId: string;
    readonly MessageAttributes: Readonly<Record<string, { readonly StringValue: string }>>;
  }): Promise<void> {
    this.#check();
    const code = input.MessageAttributes['code']?.StringValue;
    this.add(input.QueueUrl, input.MessageBody, input.MessageGroupId, code);
  }

  async receiveMessage(
    input: {
      readonly QueueUrl: string;
      readonly MaxNumberOfMessages: number;
      readonly WaitTimeSeconds: number;
    },
    call: Call = {},
  ) {
    const end = performance.now() + input.WaitTimeSeconds * SECOND_MS;
    for (;;) {
      this.#check(call);
      const found = this.#visible(input.QueueUrl).slice(0, input.MaxNumberOfMessages);
      if (found.length > 0 || performance.now() > end) return { Messages: found.map(receive) };
      await setTimeout(5);
    }
  }

  async changeMessageVisibility(input: {
    readonly QueueUrl: string;
    readonly ReceiptHandle: string | undefined;
    readonly VisibilityTimeout: number;
  }): Promise<void> {
    this.#check();
    const found = this.#queues
      .get(input.QueueUrl)!
      .find(({ MessageId }) => MessageId === input.ReceiptHandle)!;
    found.visibleAt = performance.now() + input.VisibilityTimeout * SECOND_MS;
  }

  async deleteMessage(input: {
    readonly QueueUrl: string;
    readonly ReceiptHandle: string | undefined;
  }): Promise<void> {
    this.#check();
    const queue = this.#queues.get(input.QueueUrl)!;
    const index = queue.findIndex(({ MessageId }) => MessageId === input.ReceiptHandle);
    if (index !== -1) queue.splice(index, 1);
  }

  add(url: string, Body: string, group: string, code?: string): void {
    const MessageId = randomUUID();
    this.#queues.get(url)!.push({ MessageId, Body, group, code, visibleAt: 0, receives: 0 });
  }

  /** The messages that can be received: a message also waits for earlier ones of its group. */
  #visible(url: string): Stored[] {
    const hidden = new Set<string>();
    const now = performance.now();
    return this.#queues.get(url)!.filter(({ group, visibleAt }) => {
      if (visibleAt > now) hidden.add(group);
      return !hidden.has(group);
    });
  }

  #check({ abortSignal }: Call = {}): void {
    abortSignal?.throwIfAborted();
    if (this.isDown) throw new Error('connect ECONNREFUSED');
  }
}

function receive(message: Stored) {
  const { MessageId, Body } = message;
  message.visibleAt = performance.now() + VISIBILITY_TIMEOUT * SECOND_MS;
  message.receives += 1;
  const Attributes = { ApproximateReceiveCount: String(message.receives) };
  return { MessageId, ReceiptHandle: MessageId, Body, Attributes };
}
