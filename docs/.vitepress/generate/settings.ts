import { join } from 'node:path';
import ts from 'typescript';
import { docCommentOf, parseSource, textOf, walk } from './source-text.ts';

/** Interfaces or classes whose members are options, and how the page presents them. */
interface OptionGroup {
  readonly title: string;
  /** Prefix of the options' names. */
  readonly prefix: string;
  /** Declarations by file. All base interfaces are listed too. */
  readonly from: Readonly<Record<string, readonly string[]>>;
}

const PAYMENTS = 'libs/payments/src';
const EMULATOR = 'libs/emulator/src';

/** Groups of options by name of the generated part of the page. */
export const OPTION_GROUPS: Readonly<Record<string, readonly OptionGroup[]>> = {
  options: [
    group('PaymentsModule', '', {
      'payments-options.ts': ['PaymentsModuleOptions'],
      'inbox/receive/receive-options.ts': ['ReceiveOptions'],
      'payments.module.ts': ['PaymentsModuleExtras'],
    }),
    group('Companies', 'companies[].', { 'companies/company.ts': ['Company'] }),
    group('Webhook requests', 'webhook.', { 'webhook/webhook-options.ts': ['WebhookOptions'] }),
    group('Handlers and retention', 'worker.', {
      'inbox/work/worker-options.ts': ['WorkerOptions'],
    }),
    group('Calls to the payments service', 'api.', {
      'api/api-options.ts': ['PaymentsApiOptions'],
    }),
    group('Reconcile', 'reconcile.', {
      'expectations/reconcile-options.ts': ['ReconcileOptions'],
    }),
    group('Retries of calls', 'api.retry.', { 'api/api-options.ts': ['RetryPolicy'] }),
  ],
  handlers: [
    group('@OnPaymentEvent', '', {
      'events/on-payment-event.decorator.ts': ['OnPaymentEventOptions'],
    }),
    group('exponential()', '', { 'events/retry-schedule.ts': ['ExponentialOptions'] }),
  ],
  inboxes: [
    group('memoryInbox()', '', { 'stores/memory/memory-store.ts': ['MemoryInboxOptions'] }),
    group('sqliteInbox()', '', { 'stores/sqlite/sqlite-options.ts': ['SqliteInboxOptions'] }),
    group('postgresInbox()', '', {
      'stores/postgres/postgres-options.ts': ['PostgresInboxOptions'],
    }),
  ],
  telemetry: [
    group('openTelemetry()', '', {
      'telemetry/otel/open-telemetry.ts': ['OpenTelemetryOptions'],
    }),
    group('PaymentsHealthIndicator.readiness()', '', {
      'telemetry/health.ts': ['PaymentsReadinessOptions'],
    }),
  ],
  console: [
    {
      title: 'PaymentsConsoleModule.register()',
      prefix: '',
      from: { 'libs/console/src/console-options.ts': ['PaymentsConsoleOptions'] },
    },
    {
      title: 'BasicAuthGuard',
      prefix: '',
      from: { 'libs/console/src/basic-auth-options.ts': ['BasicAuthOptions'] },
    },
  ],
  emulator: [
    {
      title: 'PaymentsEmulator.start()',
      prefix: '',
      from: {
        [`${EMULATOR}/emulator-options.ts`]: ['PaymentsEmulatorOptions'],
        [`${EMULATOR}/network-access.ts`]: ['NetworkOptions'],
        [`${EMULATOR}/companies/company-inputs.ts`]: ['NewCompany'],
      },
    },
  ],
  shop: [
    {
      title: 'Variables of the shop',
      prefix: '',
      from: { 'apps/shop/src/shop-config.ts': ['ShopEnvironment'] },
    },
  ],
};

function group(title: string, prefix: string, from: OptionGroup['from']): OptionGroup {
  const files = Object.entries(from).map(
    ([file, names]) => [`${PAYMENTS}/${file}`, names] as const,
  );
  return { title, prefix, from: Object.fromEntries(files) };
}

/**
 * A section for each group, with its options: type, default, bounds, meaning.
 *
 * @throws Error if an option has no doc comment, or an optional one no default in it.
 */
export function optionSections(root: string, groups: readonly OptionGroup[]): string {
  return groups
    .flatMap(({ title, prefix, from }) => [
      `### ${title}`,
      ...membersOf(root, from).map((member) => describeOption(prefix, member)),
    ])
    .join('\n\n');
}

type Member = ts.PropertySignature | ts.PropertyDeclaration;

function membersOf(root: string, from: OptionGroup['from']): Member[] {
  const listed = new Set(Object.values(from).flat());
  return Object.entries(from).flatMap(([file, names]) => {
    const declarations = parseSource(join(root, file)).statements.filter(
      (statement) => ts.isInterfaceDeclaration(statement) || ts.isClassDeclaration(statement),
    );
    return names.flatMap((name) => {
      const declaration = declarations.find((each) => each.name?.text === name);
      if (declaration === undefined) throw new Error(`${file} does not declare ${name}.`);
      for (const base of declaration.heritageClauses?.flatMap(({ types }) => [...types]) ?? []) {
        if (listed.has(base.expression.getText())) continue;
        throw new Error(
          `The options of ${base.expression.getText()}, the base of ${name}, are in no group.`,
        );
      }
      return declaration.members.filter(
        (member) => ts.isPropertySignature(member) || ts.isPropertyDeclaration(member),
      );
    });
  });
}

const DEFAULT = /^Default(?! of\b):? (.+)\.$/;
const BOUNDS = /^(?:At least|(?:\d[\d,]*(?: [a-zA-Z]+)?|`\w+`) to ).+\.$/;

function describeOption(prefix: string, member: Member): string {
  const name = `${prefix}${member.name.getText()}`;
  const comment = docCommentOf(member, member.getSourceFile());
  if (comment === '') throw new Error(`The option ${name} has no doc comment.`);
  const facts: string[] = [`\`${typeText(member)}\``];
  let standard: string | undefined;
  const text = comment.split(/\n{2,}/).map((paragraph) => {
    if (paragraph.startsWith('- ')) return paragraph;
    // A sentence ends with a full stop and white space.
    const sentences = paragraph.replace(/\s+/g, ' ').split(/(?<=\.) (?=[A-Z0-9`])/);
    return sentences
      .filter((sentence) => {
        const found = DEFAULT.exec(sentence)?.[1];
        standard ??= found;
        const isBounds = BOUNDS.test(sentence);
        if (isBounds) facts.push(sentence.replace(/^At/, 'at').replace(/\.$/, ''));
        return found === undefined && !isBounds;
      })
      .join(' ');
  });
  const hasInitializer = ts.isPropertyDeclaration(member) && member.initializer !== undefined;
  const isRequired = member.questionToken === undefined && !hasInitializer;
  if (standard !== undefined) facts.push(`default: ${standard}`);
  else if (isRequired) facts.push('required');
  else if (!/\b(default|required)\b/i.test(comment)) {
    throw new Error(`The doc comment of the option ${name} does not name its default.`);
  }
  return [`#### \`${name}\``, facts.join(' · '), ...text.filter((each) => each !== '')].join(
    '\n\n',
  );
}

function typeText({ type }: Member): string {
  return (type?.getText() ?? 'string').replace(/\s+/g, ' ').replace(/^\| | \| undefined$/g, '');
}

/**
 * The table of environment variables in the doc comment of `readPaymentsEnvironment()`.
 *
 * @throws Error if the code reads a variable that the table does not contain.
 */
export function environmentTable(root: string): string {
  const file = `${PAYMENTS}/payments-environment.ts`;
  const source = parseSource(join(root, file));
  const read = source.statements
    .filter(ts.isFunctionDeclaration)
    .find(({ name }) => name?.text === 'readPaymentsEnvironment');
  const table = docCommentOf(read ?? source, source)
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .join('\n');
  for (const name of new Set(source.text.match(/PAYMENTS_[A-Z_]+/g))) {
    if (!table.includes(`\`${name}\``)) throw new Error(`${file} does not document ${name}.`);
  }
  return table;
}

/** The text of a command's `--help`. */
export function helpText(root: string, file: string): string {
  let help: string | undefined;
  walk(parseSource(join(root, EMULATOR, 'command', file)), (node) => {
    if (!ts.isVariableDeclaration(node) || node.name.getText() !== 'HELP') return;
    help = node.initializer && textOf(node.initializer);
  });
  if (help === undefined) throw new Error(`${file} has no help.`);
  return `\`\`\`text\n${help.trimEnd()}\n\`\`\``;
}
