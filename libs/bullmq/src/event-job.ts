import type { Job, JobsOptions } from 'bullmq';
import type { EngineMessage, TakenMessage } from 'nestjs-payments';

/**
 * The data of a job: a CloudEvents 1.0 event in the JSON format. The attributes are members of the object, and
 * `data_base64` is the body. The attributes are not headers, because a job of BullMQ has no headers.
 */
export type EventJobData = Readonly<Record<string, string>>;

/** Returns the id of the job. BullMQ forbids colons in ids, so they are percent-encoded. */
export function jobIdOf({ id }: Pick<EngineMessage, 'id'>): string {
  return id.replace(/[%:]/g, encodeURIComponent);
}

/** Returns the data of the job. */
export function jobDataOf({ attributes, body }: EngineMessage): EventJobData {
  const data_base64 = Buffer.from(body).toString('base64');
  return { ...attributes, data_base64 };
}

/**
 * Returns the options of the job. BullMQ removes the job when the event is stored, and keeps the job for ever if the
 * event is rejected. BullMQ stores no stack trace of an error, because the stack trace would always be one of this
 * adapter.
 */
export function jobOptionsOf(message: EngineMessage): JobsOptions {
  return {
    jobId: jobIdOf(message),
    attempts: 1,
    removeOnComplete: true,
    removeOnFail: false,
    stackTraceLimit: 0,
  };
}

/**
 * Returns the message that a job contains. The data of the job may be of any type, because other programs can add jobs
 * too.
 */
export function messageOf({ data, attemptsStarted }: Job<unknown>): TakenMessage {
  const deliveries = Math.max(1, attemptsStarted);
  const members = typeof data === 'object' && data !== null ? Object.entries(data) : [];
  const body = members.find(([name]) => name === 'data_base64')?.[1] as unknown;
  if (typeof body !== 'string') {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    return { attributes: {}, body: Buffer.from(text), deliveries };
  }
  const attributes = members.filter(
    ([name, value]) => name !== 'data_base64' && typeof value === 'string',
  );
  return {
    attributes: Object.fromEntries(attributes),
    body: Buffer.from(body, 'base64'),
    deliveries,
  };
}
