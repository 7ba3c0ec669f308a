import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { ENGINE_PACKAGES } from '../../../release/workspace.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MODULE = 'libs/payments/src';

/** The folders that each store may import. */
const STORE = ['inbox/store', 'errors', 'events', 'runtime'];
/** The folders and files that each stage of the inbox and the expectations may import. */
const STAGE = [...STORE, 'telemetry/observers.ts'];

/**
 * The folders and files that each folder of the module may import, in addition to its own folder. A row for a file or
 * an inner folder replaces the row of the outer folder. Specs may import everything, and so may files without a row, such
 * as `payments.module.ts`.
 */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  'nest-internals.ts': [],
  runtime: [],
  errors: ['runtime'],
  companies: ['errors', 'runtime'],
  events: ['errors', 'nest-internals.ts'],
  api: ['companies', 'errors', 'runtime', 'telemetry/observers.ts'],
  'inbox/store': ['errors', 'events', 'runtime'],
  'inbox/work': STAGE,
  'inbox/receive': [...STAGE, 'inbox/work'],
  'inbox/operate': [...STAGE, 'companies', 'inbox/work', 'telemetry/process-facts.ts'],
  inbox: ['companies', 'events', 'runtime', 'telemetry/observers.ts'],
  webhook: [
    'companies',
    'errors',
    'events',
    'inbox/receive',
    'nest-internals.ts',
    'runtime',
    'telemetry/observers.ts',
  ],
  expectations: [...STAGE, 'api', 'companies', 'inbox/receive', 'inbox/work'],
  engines: [
    'companies',
    'errors',
    'events',
    'inbox/receive',
    'inbox/work',
    'runtime',
    'telemetry/observers.ts',
    'webhook',
  ],
  setup: [
    'api',
    'companies',
    'errors',
    'events',
    'inbox',
    'runtime',
    'telemetry/observers.ts',
    'webhook',
  ],
  'stores/sql': ['errors', 'inbox/store'],
  'stores/memory': STORE,
  'stores/sqlite': [...STORE, 'stores/sql'],
  'stores/postgres': [...STORE, 'stores/sql'],
  'telemetry/observers.ts': ['errors', 'runtime', 'telemetry/process-facts.ts'],
  'telemetry/process-facts.ts': ['errors', 'runtime'],
  'telemetry/otel': ['telemetry/observers.ts', 'errors', 'runtime'],
  'telemetry/health.ts': ['engines', 'errors', 'expectations', 'inbox', 'runtime'],
  schematics: ['payments-environment.ts'],
  testing: ['api', 'companies', 'errors', 'events', 'inbox', 'runtime', 'stores/memory', 'webhook'],
};

/** The imports that are forbidden in the files of the other packages, and why. */
const PACKAGES = [
  {
    folder: 'libs/console',
    forbidden: /^nestjs-payments\/|^payments-emulator|\/(payments|emulator|apps)\//,
    why: 'the console uses the public exports of nestjs-payments, and works with any implementation of the service',
  },
  ...ENGINE_PACKAGES.map((folder) => ({
    folder,
    forbidden:
      /^nestjs-payments(?!\/engines$)[-/]|^payments-emulator|\/(payments|console|emulator|apps)\//,
    why: 'an adapter of an engine uses the public exports of nestjs-payments, as an application could write one',
  })),
  {
    folder: 'libs/emulator',
    forbidden: /^nestjs-payments|\/(payments|console|apps)\//,
    why: 'the emulator and the module share only test/vectors, because a shared bug would pass the tests of both',
  },
  {
    folder: 'apps/shop',
    forbidden: /^payments-emulator|\/(libs|demo)\//,
    why: 'the shop uses packages, as every application does, and works with any implementation of the service',
  },
  {
    folder: 'apps/demo',
    forbidden: /\/(libs|shop)\//,
    why: 'the demo uses packages, as every application does',
  },
];

const SPECIFIER =
  /^(?:import|export)\b[^;']*?\bfrom '([^']+)';|^import '([^']+)';|\bimport\('([^']+)'\)/gm;

/** Returns the reason why the file must not import the specifier, or `undefined` if it may. */
function objection(file: string, specifier: string): string | undefined {
  const other = PACKAGES.find(({ folder }) => file.startsWith(`${folder}/`));
  if (other !== undefined) return other.forbidden.test(specifier) ? other.why : undefined;
  if (/^nestjs-payments(\/|$)/.test(specifier))
    return 'files of the module import each other by relative paths';
  if (!specifier.startsWith('.') || file.endsWith('.spec.ts')) return undefined;
  const target = relative(MODULE, normalize(join(dirname(file), specifier))).replace(
    /\.js$/,
    '.ts',
  );
  if (target.startsWith('..')) return 'it is outside of the module';
  const source = relative(MODULE, file);
  const layer = Object.keys(LAYERS)
    .filter((name) => isIn(source, name))
    .toSorted((a, b) => b.length - a.length)[0];
  if (layer === undefined) return undefined;
  const allowed = [layer, ...LAYERS[layer]!];
  return allowed.some((name) => isIn(target, name))
    ? undefined
    : `${layer} may import ${allowed.slice(1).join(', ') || 'nothing'}`;
}

const isIn = (file: string, name: string): boolean => file === name || file.startsWith(`${name}/`);

describe('imports between folders', () => {
  const files = ['libs/*/src/**/*.ts', 'apps/*/src/**/*.ts'].flatMap((pattern) =>
    globSync(pattern, { cwd: ROOT }),
  );

  it('every folder of the module has a row in the table of layers', () => {
    const folders = new Set(
      files
        .map((file) => relative(MODULE, dirname(file)))
        .filter((folder) => folder !== '' && !folder.startsWith('..')),
    );
    const missing = [...folders].filter(
      (folder) =>
        !Object.keys(LAYERS).some((name) => isIn(folder, name) || name.startsWith(`${folder}/`)),
    );
    expect(missing).toEqual([]);
  });

  it('docs/architecture.md lists every folder of the module', () => {
    const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
    const listed = Array.from(page.matchAll(/^\| `([\w/]+)\/`/gm), ([, folder]) => folder!);
    const folders = files
      .map((file) => relative(MODULE, file))
      .flatMap((file) => /^(inbox\/)?\w+(?=\/)/.exec(file)?.[0] ?? []);
    expect(listed.toSorted()).toEqual([...new Set(folders)].toSorted());
  });

  it('every file imports only the folders that the table of layers allows', () => {
    const objections: string[] = [];
    for (const file of files) {
      for (const [, ...found] of readFileSync(join(ROOT, file), 'utf8').matchAll(SPECIFIER)) {
        const specifier = found.find((one) => one !== undefined)!;
        const why = objection(file, specifier);
        if (why !== undefined) objections.push(`${file} imports ${specifier}, but ${why}`);
      }
    }
    expect(objections).toEqual([]);
  });

  it.each([
    ['errors/a.ts', '../companies/b.js', false],
    ['events/deeper/a.ts', '../../inbox/work/b.js', false],
    ['inbox/work/a.ts', '../payment-inbox.js', false],
    ['inbox/receive/a.ts', '../work/b.js', true],
    ['stores/sqlite/thread/a.ts', '../../sql/b.js', true],
    ['webhook/a.ts', '../telemetry/health.js', false],
    ['webhook/a.ts', '../payments-options.js', false],
    ['webhook/a.ts', 'nestjs-payments', false],
    ['webhook/a.spec.ts', '../api/b.js', true],
    ['payments.module.ts', './webhook/b.js', true],
  ])('the table of layers decides whether %s may import %s: %p', (file, specifier, accepted) => {
    expect(objection(`${MODULE}/${file}`, specifier) === undefined).toBe(accepted);
  });

  it.each([
    ['libs/console/src/a.ts', 'nestjs-payments/testing', false],
    ['libs/emulator/src/a.ts', 'nestjs-payments', false],
    ['libs/emulator/src/a.ts', '../../payments/src/index.js', false],
    ['apps/shop/src/a.ts', 'nestjs-payments/sqlite', true],
    ['apps/demo/src/a.ts', 'payments-emulator', true],
  ])('the table of packages decides whether %s may import %s: %p', (file, specifier, accepted) => {
    expect(objection(file, specifier) === undefined).toBe(accepted);
  });
});
