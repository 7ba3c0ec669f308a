import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';
import type { ConsumerConfig, JetStreamManager, StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { NatsConnection } from '@nats-io/transport-node';
import { PaymentsError } from 'nestjs-payments';
import type { ResolvedOptions } from './jet-stream-options.js';

const DAY_MS = 86_400_000;
/** The limits below which a stream is unsafe, because a backlog of a few days may be larger. */
const MIN_AGE = nanos(7 * DAY_MS);
const MIN_BYTES = 2 ** 30;
const MIN_MESSAGES = 1_000_000;
/** The age after which the stream of `setup: 'create'` deletes an event. */
const MAX_AGE = nanos(30 * DAY_MS);
/** The time after which a message that a lost process did not acknowledge goes to another process. */
const ACK_WAIT = nanos(30_000);
/** Messages that wait for their next delivery count too, and must not block others. */
const MAX_ACK_PENDING = 65_536;

/** A setting, when it is unsafe, its effect and the fix. */
type Rule<C> = readonly [keyof C, (config: C) => boolean, effect: string, fix: string];

const AGAIN = 'This setting cannot be changed, so delete it and create it again.';
const DELETES = 'it deletes messages that no service has taken yet';
const isLow = (limit: number | undefined, min: number): boolean =>
  limit !== undefined && limit > 0 && limit < min;

const STREAM_RULES: readonly Rule<StreamConfig>[] = [
  ['storage', (c) => c.storage !== 'file', 'a restart of the server deletes it', AGAIN],
  ['no_ack', (c) => c.no_ack === true, 'nobody learns whether a message is stored', 'Use false.'],
  ['persist_mode', (c) => c.persist_mode === 'async', 'it accepts messages too early', AGAIN],
  ['max_age', (c) => isLow(c.max_age, MIN_AGE), DELETES, `Use 0, or at least ${MIN_AGE} (7 days).`],
  ...(['max_bytes', 'max_msgs'] as const).map((limit): Rule<StreamConfig> => {
    const min = limit === 'max_bytes' ? MIN_BYTES : MIN_MESSAGES;
    const isUnsafe = (c: StreamConfig) => c.discard === 'old' && isLow(c[limit], min);
    return [limit, isUnsafe, DELETES, `Use discard "new", or at least ${min}.`];
  }),
  [
    'max_msgs_per_subject',
    (c) => !c.discard_new_per_subject && isLow(c.max_msgs_per_subject, MIN_MESSAGES),
    DELETES,
    'Use -1.',
  ],
];

const CONSUMER_RULES: readonly Rule<ConsumerConfig>[] = [
  ['ack_policy', (c) => c.ack_policy !== 'explicit', 'failed messages are not repeated', AGAIN],
  ['max_deliver', (c) => (c.max_deliver ?? -1) > 0, 'later deliveries never happen', 'Use -1.'],
  ['deliver_subject', (c) => c.deliver_subject !== undefined, 'it is no pull consumer', AGAIN],
  ['headers_only', (c) => c.headers_only === true, 'messages have no body', 'Use false.'],
  [
    'inactive_threshold',
    (c) => (c.inactive_threshold ?? 0) > 0,
    'the server deletes the consumer while the service is away',
    'Use 0.',
  ],
  ['max_batch', (c) => (c.max_batch ?? 0) > 0, 'it rejects requests for more messages', 'Use 0.'],
  [
    'max_expires',
    (c) => isLow(c.max_expires, ACK_WAIT),
    'it rejects requests that wait longer',
    `Use 0, or at least ${ACK_WAIT} (30 s).`,
  ],
];

/** The names of a stream and its dead letters. */
export function namesOf(stream: string) {
  const deadSubject = (service: string): string => `${stream}_dead.${service}`;
  return { subjects: `${stream}.>`, dead: `${stream}_DEAD`, deadSubject };
}

/**
 * Checks the streams, and the consumer of the service; creates what is missing if `setup` is `create`. Returns the time
 * after which JetStream delivers a message again that is not acknowledged, in nanoseconds.
 *
 * @param warn logs a line
 * @throws PaymentsError `engine_unsafe`, unless `setup` is `warn`.
 */
export async function checkSettings(
  connection: NatsConnection,
  { streams, consumers }: JetStreamManager,
  { service, setup, stream }: ResolvedOptions,
  warn: (line: string) => void,
): Promise<number> {
  const { subjects, dead, deadSubject } = namesOf(stream);
  const report = (problems: readonly string[]): void => {
    if (problems.length === 0) return;
    const text = `Settings of JetStream lose events. ${problems.join(' ')}`;
    if (setup !== 'warn') throw new PaymentsError('engine_unsafe', text);
    warn(text);
  };
  const findStream = async (name: string, subject: string, max_age: number) => {
    const rules: readonly Rule<StreamConfig>[] = [
      [
        'subjects',
        (c) => !c.subjects?.includes(subject),
        'a subject is missing',
        `Add ${subject}.`,
      ],
      ...STREAM_RULES,
    ];
    // A stream that is full rejects messages, and deletes none.
    const [storage, retention, discard] = ['file', 'limits', 'new'] as const;
    const num_replicas = connection.info?.cluster === undefined ? 1 : 3;
    const own = { name, subjects: [subject], storage, retention, discard, max_age, num_replicas };
    const add = setup === 'create' ? () => streams.add(own) : undefined;
    const info = await findOr(streams.info(name), add);
    report(problemsOf(`stream "${name}"`, info?.config, rules));
    return info;
  };

  const events = await findStream(stream, subjects, MAX_AGE);
  if (events?.config.num_replicas === 1) warn(oneReplica(stream));
  const { retention } = events?.config ?? {};
  let others = events?.state.consumer_count ?? 0;
  if (service === undefined) {
    if (retention === 'interest' && others === 0)
      report([unsafeRetention(stream, retention, 'no')]);
    return ACK_WAIT;
  }
  const letters = await findStream(dead, deadSubject('*'), 0);
  if (letters?.config.retention === 'interest') report([unsafeRetention(dead, 'interest', 'no')]);
  const info = consumers.info(stream, service);
  let consumer = await findOr(info);
  others -= consumer === null ? 0 : 1;
  if (retention === 'workqueue' && others > 0) {
    report([unsafeRetention(stream, retention, 'another')]);
  } else if (consumer === null && setup === 'create') {
    consumer = await consumers.add(stream, {
      durable_name: service,
      ack_policy: 'explicit',
      deliver_policy: 'all',
      max_deliver: -1,
      ack_wait: ACK_WAIT,
      max_ack_pending: MAX_ACK_PENDING,
    });
  }
  const skips = (filter: string | string[] | undefined): boolean =>
    filter !== undefined && ![subjects, '>'].includes(String(filter));
  const filterRules = (['filter_subject', 'filter_subjects'] as const).map(
    (filter): Rule<ConsumerConfig> => [
      filter,
      (c) => skips(c[filter]),
      'the service does not get all events',
      `Use "${subjects}".`,
    ],
  );
  const rules = [...CONSUMER_RULES, ...filterRules];
  report(problemsOf(`consumer "${service}"`, consumer?.config, rules));
  const { ack_wait = ACK_WAIT, backoff = [] } = consumer?.config ?? {};
  return Math.min(ack_wait, ...backoff);
}

const MISSING: ReadonlySet<number> = new Set([
  JetStreamApiCodes.StreamNotFound,
  JetStreamApiCodes.ConsumerNotFound,
]);

/** Returns what exists, or what `add` creates, or `null`. */
async function findOr<T>(info: Promise<T>, add?: () => Promise<T>): Promise<T | null> {
  try {
    return await info;
  } catch (error) {
    if (!(error instanceof JetStreamApiError && MISSING.has(error.code))) throw error;
    return add === undefined ? null : add();
  }
}

function problemsOf<C extends object>(
  what: string,
  config: C | undefined,
  rules: readonly Rule<C>[],
): string[] {
  if (config === undefined) {
    return [`The ${what} does not exist. Create it, or let setup: 'create' do this.`];
  }
  return rules
    .filter(([, isUnsafe]) => isUnsafe(config))
    .map(([setting, , effect, fix]) => {
      const value = JSON.stringify(config[setting]);
      return `The ${what} has ${String(setting)} ${value}: ${effect}. ${fix}`;
    });
}

function unsafeRetention(name: string, retention: string, consumers: 'no' | 'another'): string {
  const effect =
    consumers === 'no' ? 'it deletes each message at once' : 'only one service takes each event';
  return `The stream "${name}" has retention "${retention}" and ${consumers} consumer: ${effect}. Use "limits".`;
}

function oneReplica(stream: string): string {
  return (
    `The stream "${stream}" has one replica. A crash of the machine or a power failure loses the events that the server ` +
    'accepted in the last two minutes, unless its configuration has sync_interval: always (nats-server 2.10 or later). ' +
    'The adapter cannot read this setting. Use three replicas, or set sync_interval: always.'
  );
}
