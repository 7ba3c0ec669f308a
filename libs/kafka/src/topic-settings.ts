import { ConfigResourceTypes, findErrorBy } from '@platformatic/kafka';
import type { Admin } from '@platformatic/kafka';
import { PaymentsError } from 'nestjs-payments';
import { reportUnsafe } from 'nestjs-payments/engines';
import type { engineLog } from 'nestjs-payments/engines';
import { namesOf } from './kafka-options.js';
import type { ResolvedKafkaOptions } from './kafka-options.js';

const DAY_MS = 86_400_000;
/** The limits below which a topic is unsafe, because a backlog of a few days may be larger. */
const MIN_AGE_MS = 7 * DAY_MS;
const MIN_BYTES = 2 ** 30;
/** The age after which a topic of `setup: 'create'` deletes an event. */
const MAX_AGE_MS = 30 * DAY_MS;

const isLow = (limit: string, min: number): boolean => Number(limit) >= 0 && Number(limit) < min;
const DELETES = 'Kafka deletes events that no service has taken yet';

/** For each setting of a topic: which value is unsafe, its effect and the fix. */
const RULES: readonly [
  name: string,
  isUnsafe: (value: string) => boolean,
  effect: string,
  fix: string,
][] = [
  [
    'min.insync.replicas',
    (value) => Number(value) < 2,
    'an event is accepted when one broker has it, and is lost with this broker',
    'Use 2.',
  ],
  [
    'cleanup.policy',
    (value) => value !== 'delete',
    'Kafka keeps only the last event of each transaction',
    'Use "delete".',
  ],
  [
    'retention.ms',
    (value) => isLow(value, MIN_AGE_MS),
    DELETES,
    `Use -1, or at least ${MIN_AGE_MS} (7 days).`,
  ],
  [
    'retention.bytes',
    (value) => isLow(value, MIN_BYTES),
    DELETES,
    `Use -1, or at least ${MIN_BYTES}.`,
  ],
  [
    'unclean.leader.election.enable',
    (value) => value === 'true',
    'a broker that does not have all events can become the leader',
    'Use false.',
  ],
];

/**
 * Checks the topic of the events, and the topic for the dead letters of the service. Creates what is missing, unless
 * `setup` is `check`.
 *
 * @throws PaymentsError `engine_unsafe`, unless `setup` is `warn`.
 */
export async function checkTopics(
  admin: Admin,
  options: ResolvedKafkaOptions,
  log: ReturnType<typeof engineLog>,
): Promise<void> {
  const { topic, service, setup, partitions } = options;
  const check = async (name: string, count: number, maxAgeMs: number): Promise<void> => {
    if (setup !== 'check') await create(admin, name, count, maxAgeMs, setup === 'create');
    const problems = await problemsOf(admin, name);
    if (problems.length === 0) return;
    reportUnsafe(`Settings of Kafka lose events. ${problems.join(' ')}`, options, log);
  };
  await check(topic, partitions, MAX_AGE_MS);
  if (service !== undefined) await check(namesOf(topic, service).dead, 1, -1);
}

/** Creates a topic if it does not exist. A safe topic needs three brokers; others have the defaults of the cluster. */
async function create(
  admin: Admin,
  name: string,
  partitions: number,
  maxAgeMs: number,
  isSafe: boolean,
): Promise<void> {
  const configs = [
    { name: 'cleanup.policy', value: 'delete' },
    { name: 'retention.ms', value: String(maxAgeMs) },
    ...(isSafe ? [{ name: 'min.insync.replicas', value: '2' }] : []),
  ];
  const replicas = isSafe ? 3 : -1;
  try {
    await admin.createTopics({ topics: [name], partitions, replicas, configs });
  } catch (error) {
    if (isCode(error, 'TOPIC_ALREADY_EXISTS')) return;
    if (!isCode(error, 'INVALID_REPLICATION_FACTOR')) throw error;
    throw new PaymentsError(
      'engine_unsafe',
      `The topic "${name}" could not be created, because the cluster has fewer than 3 brokers. For development, use ` +
        "kafka({ setup: 'warn' }).",
    );
  }
}

async function problemsOf(admin: Admin, name: string): Promise<string[]> {
  let replicas: number;
  let settings: Map<string, unknown>;
  try {
    const { topics } = await admin.metadata({ topics: [name], forceUpdate: true });
    replicas = Math.min(...topics.get(name)!.partitions.map((one) => one.replicas.length));
    const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: name };
    const [described] = await admin.describeConfigs({
      resources: [{ ...resource, configurationKeys: RULES.map(([setting]) => setting) }],
    });
    settings = new Map(described!.configs.map((config) => [config.name, config.value]));
  } catch (error) {
    if (isUnknownTopic(error) || isCode(error, 'UNKNOWN_TOPIC_OR_PARTITION')) {
      return [`The topic "${name}" does not exist. Create it, or let setup: 'create' do this.`];
    }
    if (!isCode(error, 'TOPIC_AUTHORIZATION_FAILED')) throw error;
    return [
      `The settings of the topic "${name}" could not be read. Allow this user DescribeConfigs, or check the settings ` +
        "yourself and use kafka({ setup: 'warn' }).",
    ];
  }
  const problems = RULES.flatMap(([setting, isUnsafe, effect, fix]) => {
    const value = settings.get(setting);
    if (typeof value !== 'string' || !isUnsafe(value)) return [];
    return [`The topic "${name}" has ${setting} ${value}: ${effect}. ${fix}`];
  });
  if (replicas < 2) {
    problems.push(
      `The topic "${name}" has one replica: its events are lost with the broker. Use 3 replicas.`,
    );
  }
  return problems;
}

/** Whether the client has found no topic in the metadata. */
export function isUnknownTopic(error: unknown): boolean {
  return (error as Error).message.startsWith('Unknown topic');
}

function isCode(error: unknown, apiId: string): boolean {
  return findErrorBy(error as Error, 'apiId', apiId) !== null;
}
