import { ConfigResourceTypes, findErrorBy } from '@platformatic/kafka';
import type { Admin } from '@platformatic/kafka';
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
const DELETES = 'Kafka deletes events that no service has taken yet. Use -1, or at least';

/** A setting, when it is unsafe, and its effect and fix. */
type Rule = readonly [setting: string, isUnsafe: (value: string) => boolean, effect: string];

const RULES: readonly Rule[] = [
  ['min.insync.replicas', (v) => Number(v) < 2, 'the loss of one broker loses events. Use 2.'],
  [
    'cleanup.policy',
    (v) => v !== 'delete',
    'Kafka keeps only the last event of each transaction. Use "delete".',
  ],
  ['retention.ms', (v) => isLow(v, MIN_AGE_MS), `${DELETES} ${MIN_AGE_MS} (7 days).`],
  ['retention.bytes', (v) => isLow(v, MIN_BYTES), `${DELETES} ${MIN_BYTES}.`],
  [
    'unclean.leader.election.enable',
    (v) => v === 'true',
    'a broker that does not have all events can become the leader. Use false.',
  ],
];

const WARN = "use kafka({ setup: 'warn' })";
/** The errors of Kafka that are about a topic, with the fix. */
const REFUSALS = [
  ['UNKNOWN_TOPIC_OR_PARTITION', "does not exist. Create it, or let setup: 'create' do this."],
  [
    'INVALID_REPLICATION_FACTOR',
    `could not be created, because the cluster has fewer than 3 brokers. For development, ${WARN}.`,
  ],
  [
    'TOPIC_AUTHORIZATION_FAILED',
    `could not be created, or its settings could not be read. Allow this user Create (for setup: 'create') and ` +
      `DescribeConfigs, or check the settings yourself and ${WARN}.`,
  ],
] as const;

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
  /** Creates a topic if it does not exist. A safe topic needs three brokers. */
  const create = async (name: string, count: number, maxAgeMs: number): Promise<void> => {
    const isSafe = setup === 'create';
    const configs = [
      { name: 'cleanup.policy', value: 'delete' },
      { name: 'retention.ms', value: String(maxAgeMs) },
      ...(isSafe ? [{ name: 'min.insync.replicas', value: '2' }] : []),
    ];
    const replicas = isSafe ? 3 : -1;
    try {
      await admin.createTopics({ topics: [name], partitions: count, replicas, configs });
    } catch (error) {
      if (!isCode(error, 'TOPIC_ALREADY_EXISTS')) throw error;
    }
  };
  const check = async (name: string, count: number, maxAgeMs: number): Promise<void> => {
    let problems: readonly string[];
    try {
      if (setup !== 'check') await create(name, count, maxAgeMs);
      problems = await problemsOf(admin, name);
    } catch (error) {
      problems = REFUSALS.filter(([code]) => isCode(error, code)).map(([, text]) => text);
      if (problems.length === 0) throw error;
    }
    if (problems.length === 0) return;
    const text = problems.map((problem) => ` The topic "${name}" ${problem}`).join('');
    reportUnsafe(`Settings of Kafka lose events.${text}`, options, log);
  };
  await check(topic, partitions, MAX_AGE_MS);
  if (service !== undefined) await check(namesOf(topic, service).dead, 1, -1);
}

/** Returns a text for each unsafe setting of a topic. */
async function problemsOf(admin: Admin, resourceName: string): Promise<string[]> {
  const configurationKeys = RULES.map(([setting]) => setting);
  const resourceType = ConfigResourceTypes.TOPIC;
  const resources = [{ resourceType, resourceName, configurationKeys }];
  const [described] = await admin.describeConfigs({ resources });
  const values = new Map(described!.configs.map(({ name, value }) => [name, value]));
  return RULES.flatMap(([setting, isUnsafe, effect]) => {
    const value = values.get(setting);
    return value != null && isUnsafe(value) ? [`has ${setting} ${value}: ${effect}`] : [];
  });
}

function isCode(error: unknown, apiId: string): boolean {
  return findErrorBy(error as Error, 'apiId', apiId) !== null;
}
