import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';
import type { ConsumerConfig, JetStreamManager, StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { NatsConnection } from '@nats-io/transport-node';
import { reportUnsafe } from 'nestjs-payments/engines';
import type { engineLog } from 'nestjs-payments/engines';
import type { ResolvedOptions } from './jet-stream-options.js';

const DAY_MS = 86_400_000;
/**
 * Limits of age, bytes and messages. A stream with a lower limit is unsafe, because a backlog of a few days may exceed
 * that limit.
 */
const MIN_AGE = nanos(7 * DAY_MS);
const MIN_BYTES = 2 ** 30;
const MIN_MESSAGES = 1_000_000;
/** The age at which a stream that the adapter has created (`setup: 'create'`) deletes an event. */
const MAX_AGE = nanos(30 * DAY_MS);
/** If a process dies before it has acknowledged a message, another process gets the message after this time. */
const ACK_WAIT = nanos(30_000);
/**
 * Maximum number of messages that are not acknowledged. The number is large, because messages that wait for their next
 * delivery count too, and must not block other messages.
 */
const MAX_ACK_PENDING = 65_536;

/**
 * A rule about a setting: the name of the setting, whether a configuration has an unsafe value of it, and the effect of
 * this value with the fix.
 */
type Rule<C> = readonly [setting: keyof C, isUnsafe: (config: C) => boolean, effect: string];

const AGAIN = 'This setting cannot be changed, so delete it and create it again.';
const DELETES = 'it deletes messages too early';
const isLow = (limit: number | undefined, min: number): boolean =>
  limit !== undefined && limit > 0 && limit < min;

const streamRules = (subject: string, oneReplica: boolean): readonly Rule<StreamConfig>[] => [
  ['subjects', (c) => !c.subjects?.includes(subject), `a subject is missing. Add ${subject}.`],
  ['storage', (c) => c.storage !== 'file', `a restart of the server deletes it. ${AGAIN}`],
  ['retention', (c) => c.retention !== 'limits', 'some services miss events. Use "limits".'],
  ['no_ack', (c) => c.no_ack === true, 'nobody learns whether a message is stored. Use false.'],
  ['persist_mode', (c) => c.persist_mode === 'async', `it accepts messages too early. ${AGAIN}`],
  [
    'num_replicas',
    (c) => !oneReplica && c.num_replicas === 1,
    'a crash of the machine or a power failure loses the events of the last two minutes. Use three replicas. Or set ' +
      'sync_interval: always at the server (nats-server 2.10 or later) and the option oneReplica: true, because a ' +
      'client cannot read sync_interval.',
  ],
  ['max_age', (c) => isLow(c.max_age, MIN_AGE), `${DELETES}. Use at least ${MIN_AGE} (7 days).`],
  [
    'discard',
    (c) =>
      c.discard === 'old' && (isLow(c.max_bytes, MIN_BYTES) || isLow(c.max_msgs, MIN_MESSAGES)),
    `${DELETES}. Use "new", or max_bytes ${MIN_BYTES} and max_msgs ${MIN_MESSAGES} or more.`,
  ],
  [
    'max_msgs_per_subject',
    (c) => !c.discard_new_per_subject && isLow(c.max_msgs_per_subject, MIN_MESSAGES),
    `${DELETES}. Use -1.`,
  ],
];

const isSet = (limit: number | undefined): boolean => (limit ?? 0) > 0;

const consumerRules = (subjects: string): readonly Rule<ConsumerConfig>[] => [
  ['ack_policy', (c) => c.ack_policy !== 'explicit', `failed messages are not repeated. ${AGAIN}`],
  ['max_deliver', (c) => isSet(c.max_deliver), 'later deliveries never happen. Use -1.'],
  ['deliver_subject', (c) => c.deliver_subject !== undefined, `it is no pull consumer. ${AGAIN}`],
  ['headers_only', (c) => c.headers_only === true, 'messages have no body. Use false.'],
  ['inactive_threshold', (c) => isSet(c.inactive_threshold), 'it is deleted while idle. Use 0.'],
  ['max_batch', (c) => isSet(c.max_batch), 'it rejects requests for more messages. Use 0.'],
  ['max_expires', (c) => isLow(c.max_expires, ACK_WAIT), 'it rejects long requests. Use 0.'],
  ...(['filter_subject', 'filter_subjects'] as const).map((filter): Rule<ConsumerConfig> => [
    filter,
    (c) => c[filter] !== undefined && ![subjects, '>'].includes(String(c[filter])),
    `the service does not get all events. Use "${subjects}".`,
  ]),
];

/**
 * Returns the subjects of a stream, the name of its stream of dead letters, and the subject of a service's dead
 * letters.
 */
export function namesOf(stream: string) {
  const deadSubject = (service: string): string => `${stream}_dead.${service}`;
  return { subjects: `${stream}.>`, dead: `${stream}_DEAD`, deadSubject };
}

/**
 * Checks the streams and the consumer of the worker service. If `setup` is `create`, creates those that are missing.
 * Returns the time after which JetStream delivers a message again if the message is not acknowledged, in nanoseconds.
 *
 * @throws PaymentsError `engine_unsafe`, unless `setup` is `warn`.
 */
export async function checkSettings(
  connection: NatsConnection,
  { streams, consumers }: JetStreamManager,
  options: ResolvedOptions,
  log: ReturnType<typeof engineLog>,
): Promise<number> {
  const { service, setup, stream, oneReplica } = options;
  const { subjects, dead, deadSubject } = namesOf(stream);
  const find = async <C extends object>(
    what: string,
    info: Promise<{ readonly config: C }>,
    add: () => Promise<{ readonly config: C }>,
    rules: readonly Rule<C>[],
  ): Promise<C | undefined> => {
    const found = await info.catch((error: unknown) => {
      if (!(error instanceof JetStreamApiError && MISSING.has(error.code))) throw error;
      return setup === 'create' ? add() : undefined;
    });
    const problems = problemsOf(what, found?.config, rules);
    if (problems !== '')
      reportUnsafe(`Settings of JetStream lose events.${problems}`, options, log);
    return found?.config;
  };
  const findStream = async (name: string, subject: string, max_age: number): Promise<void> => {
    // A stream that is full rejects messages, and deletes none.
    const [storage, retention, discard] = ['file', 'limits', 'new'] as const;
    const num_replicas = connection.info?.cluster === undefined ? 1 : 3;
    const own = { name, subjects: [subject], storage, retention, discard, max_age, num_replicas };
    const rules = streamRules(subject, oneReplica);
    await find(`stream "${name}"`, streams.info(name), () => streams.add(own), rules);
  };

  await findStream(stream, subjects, MAX_AGE);
  if (service === undefined) return ACK_WAIT;
  await findStream(dead, deadSubject('*'), 0);
  const own = {
    durable_name: service,
    ack_policy: 'explicit',
    deliver_policy: 'all',
    max_deliver: -1,
    ack_wait: ACK_WAIT,
    max_ack_pending: MAX_ACK_PENDING,
  } as const;
  const config = await find(
    `consumer "${service}"`,
    consumers.info(stream, service),
    () => consumers.add(stream, own),
    consumerRules(subjects),
  );
  const { ack_wait = ACK_WAIT, backoff = [] } = config ?? {};
  return Math.min(ack_wait, ...backoff);
}

const MISSING: ReadonlySet<number> = new Set([
  JetStreamApiCodes.StreamNotFound,
  JetStreamApiCodes.ConsumerNotFound,
]);

/**
 * Returns a sentence for each unsafe setting of a stream or consumer. If the stream or consumer does not exist, returns
 * a sentence about this.
 */
function problemsOf<C extends object>(
  what: string,
  config: C | undefined,
  rules: readonly Rule<C>[],
): string {
  if (config === undefined) {
    return ` The ${what} does not exist. Create it, or let setup: 'create' do this.`;
  }
  return rules
    .filter(([, isUnsafe]) => isUnsafe(config))
    .map(([name, , effect]) => {
      return ` The ${what} has ${String(name)} ${JSON.stringify(config[name])}: ${effect}`;
    })
    .join('');
}
