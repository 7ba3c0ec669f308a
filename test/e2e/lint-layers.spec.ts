import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCE = 'libs/payments/src';
const RESTRICTED = 'eslint(no-restricted-imports)';

/** For each folder of the module: the folders that it must not import, and an example of a folder that it may import. */
const LAYERS = {
  errors: [
    ['companies', 'events', 'inbox', 'webhook', 'api', 'expectations', 'stores', 'testing'],
    'runtime',
  ],
  runtime: [
    [
      'errors',
      'companies',
      'events',
      'inbox',
      'webhook',
      'api',
      'expectations',
      'stores',
      'testing',
    ],
    'runtime',
  ],
  companies: [['events', 'inbox', 'webhook', 'api', 'expectations', 'stores', 'testing'], 'errors'],
  events: [['inbox', 'webhook', 'api', 'expectations', 'stores', 'testing'], 'companies'],
  inbox: [['webhook', 'api', 'expectations', 'stores', 'testing'], 'events'],
  webhook: [['api', 'expectations', 'stores', 'testing'], 'inbox'],
  api: [['events', 'inbox', 'webhook', 'expectations', 'stores', 'testing'], 'companies'],
  expectations: [['webhook', 'stores', 'testing'], 'api'],
  stores: [['webhook', 'api', 'companies', 'expectations', 'telemetry', 'testing'], 'runtime'],
  telemetry: [['webhook', 'stores', 'testing'], 'inbox'],
  testing: [[], 'webhook'],
} as const;

/** A file with one import, and whether the linter must accept it. */
interface Sample {
  readonly file: string;
  readonly specifier: string;
  readonly accepted: boolean;
}

const samples: Sample[] = [];
function add(folder: string, specifier: string, accepted = false): void {
  samples.push({ file: `${folder}/sample-${samples.length}.ts`, specifier, accepted });
}

for (const [layer, [forbidden, allowed]] of Object.entries(LAYERS)) {
  for (const depth of [1, 2, 3]) {
    const folder = [SOURCE, layer, ...Array<string>(depth - 1).fill('deeper')].join('/');
    const up = '../'.repeat(depth);
    for (const other of forbidden) {
      add(folder, `${up}${other}/some-file.js`);
      add(folder, `${up}${other}/deeper/some-file.js`);
    }
    for (const file of ['payments.module', 'payments-options', 'payments-lifecycle', 'index']) {
      add(folder, `${up}${file}.js`);
    }
    add(folder, `${up}${allowed}/some-file.js`, true);
    add(folder, `${up}nest-internals.js`, true);
    add(folder, './index.js', true);
  }
  add(`${SOURCE}/${layer}`, 'nestjs-payments');
  add(`${SOURCE}/${layer}`, '@nestjs/core/injector/module.js');
  add(`${SOURCE}/${layer}`, '@nestjs/core', true);
}
for (const layer of ['inbox', 'webhook', 'api', 'expectations']) {
  for (const file of ['observers', 'payments-observer']) {
    add(`${SOURCE}/${layer}`, `../telemetry/${file}.js`, true);
  }
  for (const file of ['health', 'otel/index']) {
    add(`${SOURCE}/${layer}`, `../telemetry/${file}.js`);
  }
}
const STORES = ['memory', 'sqlite', 'postgres'];
for (const store of STORES) {
  for (const depth of [1, 2]) {
    const folder = [SOURCE, 'stores', store, ...Array<string>(depth - 1).fill('deeper')].join('/');
    const up = '../'.repeat(depth);
    for (const other of STORES) if (other !== store) add(folder, `${up}${other}/some-file.js`);
    add(folder, `${up}../inbox/work/some-file.js`);
    add(folder, `${up}../inbox/store/some-file.js`, true);
    add(folder, `${up}sql/some-file.js`, store !== 'memory');
  }
}
/** For each folder inside `inbox/`: the folders there that it must not import. */
const INBOX_LAYERS = {
  store: ['work', 'receive', 'operate'],
  work: ['receive', 'operate'],
  receive: ['operate'],
  operate: ['receive'],
};
for (const [folder, forbidden] of Object.entries(INBOX_LAYERS)) {
  for (const depth of [1, 2]) {
    const inside = [SOURCE, 'inbox', folder, ...Array<string>(depth - 1).fill('deeper')].join('/');
    const up = '../'.repeat(depth);
    for (const other of Object.keys(INBOX_LAYERS)) {
      if (other !== folder) add(inside, `${up}${other}/some-file.js`, !forbidden.includes(other));
    }
    add(inside, `${up}payment-inbox.js`);
    add(inside, `${up}../webhook/some-file.js`);
    add(inside, `${up}../events/some-file.js`, true);
  }
}
/** The folders inside `api/`, from the lowest. Each may import those before it. */
const IN_API = ['http', 'token', 'call'];
for (const [index, folder] of IN_API.entries()) {
  const inside = `${SOURCE}/api/${folder}`;
  for (const [other, name] of IN_API.entries()) {
    if (other !== index) add(inside, `../${name}/some-file.js`, other < index);
  }
  add(inside, '../http-api-client.js');
  add(inside, '../payments-api.js', true);
}
for (const stage of ['inbox', 'api', 'expectations']) {
  add(`${SOURCE}/telemetry/otel`, `../../${stage}/some-file.js`);
}
add(`${SOURCE}/telemetry/otel`, '../payments-observer.js', true);
for (const depth of [0, 1, 2]) {
  const inside = '/deeper'.repeat(depth);
  const up = '../'.repeat(depth);
  const console = `libs/console/src${inside}`;
  for (const name of ['nestjs-payments/testing', 'payments-emulator']) add(console, name);
  add(console, `${up}../../payments/src/inbox/payment-inbox.js`);
  add(console, `${up}../../emulator/src/index.js`);
  add(console, 'nestjs-payments', true);
  const emulator = `libs/emulator/src${inside}`;
  for (const name of ['nestjs-payments', 'nestjs-payments/testing', 'nestjs-payments-console']) {
    add(emulator, name);
  }
  add(emulator, `${up}../../payments/src/webhook/signature.js`);
  add(emulator, `${up}../../../libs/payments/dist/index.js`);
  add(emulator, '@nestjs/core', true);
  const shop = `apps/shop/src${inside}`;
  add(shop, 'payments-emulator');
  add(shop, `${up}../../../libs/payments/src/index.js`);
  add(shop, `${up}../../demo/src/demo.js`);
  add(shop, 'nestjs-payments/sqlite', true);
  const demo = `apps/demo/src${inside}`;
  add(demo, `${up}../../../libs/emulator/src/index.js`);
  add(demo, `${up}../../shop/src/main.js`);
  add(demo, 'payments-emulator', true);
}
for (const folder of ['libs/console/src', 'libs/emulator/src', 'apps/shop/src', 'apps/demo/src']) {
  add(folder, '@nestjs/common/constants.js');
}

const CYCLE = {
  [`${SOURCE}/inbox/first.ts`]:
    "import type { Second } from './second.js';\nexport interface First { second: Second }\n",
  [`${SOURCE}/inbox/second.ts`]:
    "import type { First } from './first.js';\nexport interface Second { first: First }\n",
};

describe('the linter', () => {
  const folder = mkdtempSync(join(tmpdir(), 'layers-'));
  const found = new Set<string>();
  afterAll(() => rmSync(folder, { recursive: true }));

  function write(file: string, text: string): void {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }

  beforeAll(() => {
    const config = JSON.parse(readFileSync(join(ROOT, '.oxlintrc.json'), 'utf8')) as object;
    // Rules that need type information need the real files, so they are off.
    write('.oxlintrc.json', JSON.stringify({ ...config, options: {} }));
    for (const { file, specifier } of samples) {
      write(file, `import { value } from '${specifier}';\nexport const copy = value;\n`);
    }
    for (const [file, text] of Object.entries(CYCLE)) write(file, text);
    const program = join(ROOT, 'node_modules/oxlint/bin/oxlint');
    const { stdout } = spawnSync(process.execPath, [program, '--format', 'json', '.'], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 1e8,
    });
    const { diagnostics } = JSON.parse(stdout) as {
      diagnostics: { code: string; filename: string }[];
    };
    for (const { code, filename } of diagnostics) found.add(`${code} ${filename}`);
  });

  const rejects = ({ file }: Sample) => found.has(`${RESTRICTED} ${file}`);

  it('.oxlintrc.json restricts the imports of every folder of the module', () => {
    const folders = readdirSync(join(ROOT, SOURCE), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    expect(folders.toSorted()).toEqual(Object.keys(LAYERS).toSorted());
  });

  it('the linter restricts the imports of every folder of inbox/', () => {
    const folders = readdirSync(join(ROOT, SOURCE, 'inbox'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    expect(folders.toSorted()).toEqual(Object.keys(INBOX_LAYERS).toSorted());
  });

  it('docs/architecture.md lists every folder of the module', () => {
    const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
    const listed = Array.from(page.matchAll(/^\| `([\w/]+)\/`/gm), ([, folder]) => folder!);
    const stages = Object.keys(LAYERS).filter((layer) => layer !== 'inbox');
    const inbox = Object.keys(INBOX_LAYERS).map((layer) => `inbox/${layer}`);
    expect(listed.toSorted()).toEqual([...stages, ...inbox].toSorted());
  });

  it('the linter rejects every import against the direction of the layers, at any depth', () => {
    const forbidden = samples.filter(({ accepted }) => !accepted);
    expect(forbidden.filter((sample) => !rejects(sample))).toEqual([]);
  });

  it('the linter accepts imports along the direction of the layers', () => {
    expect(samples.filter((sample) => sample.accepted && rejects(sample))).toEqual([]);
  });

  it('the linter rejects a cycle of type imports', () => {
    for (const file of Object.keys(CYCLE)) expect(found).toContain(`import(no-cycle) ${file}`);
  });
});
