import { join } from 'node:path';
import { loadedBy } from '../loaded-modules.ts';
import { NPM_VERSIONS } from '../package-managers.ts';
import type { PackedPackage } from '../packed-package.ts';
import { PinnedNpm } from '../pinned-npm.ts';
import type { SmokePart } from '../smoke-part.ts';

/** Versions of the required peers. */
const PEERS: Readonly<Record<string, string>> = {
  '@nestjs/common': '12.5.1',
  '@nestjs/core': '12.5.1',
  '@nestjs/platform-express': '12.5.1',
  'class-transformer': '0.5.1',
  'class-validator': '0.15.1',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
};
/** Packages that the root entry must not load before the application uses them. */
const LATER = [
  '@nestjs/config',
  'class-transformer',
  'class-validator',
  'node:sqlite',
  'pg',
  'undici',
];

/** Installs the packages with several versions of npm, and checks which packages the root entry loads. */
export const part: SmokePart = {
  description:
    'npm 10 and 11 install without a warning, and the root entry loads only required packages',
  async run({ payments, consolePackage, emulator, folder, node, oldestNode }, checks) {
    for (const version of NPM_VERSIONS) {
      const npm = await PinnedNpm.install(version, join(folder, `npm-${version}`));
      for (const packages of [[payments], [consolePackage, payments], [emulator]]) {
        const { name } = packages[0]!.manifest;
        await checks.that(`AP-10 ${name}: npm ${version} installs it without a warning`, () =>
          npm.installs(
            join(folder, `${name}-${version}`),
            Object.assign({}, ...packages.map(requiredPeers), ...packages.map(tarball)),
          ),
        );
      }
    }
    const application = join(folder, `${payments.manifest.name}-${NPM_VERSIONS[0]}`);
    for (const runner of [node, await oldestNode()]) {
      for (const how of ['import', 'require'] as const) {
        await checks.that(
          `AP-10 nestjs-payments, ${runner.name}: ${how} loads the root entry and no package that is needed later`,
          async () => {
            const loaded = await loadedBy('nestjs-payments', how, runner.path, application);
            if (!loaded.has('@nestjs/common')) throw new Error(`It loaded ${[...loaded].join()}.`);
            const early = LATER.filter((name) => loaded.has(name));
            if (early.length > 0) throw new Error(`It loaded ${early.join(', ')}.`);
          },
        );
      }
    }
  },
};

function tarball(packed: PackedPackage): Record<string, string> {
  return { [packed.manifest.name]: `file:${packed.tarball}` };
}

function requiredPeers({ manifest }: PackedPackage): Record<string, string> {
  const { peerDependencies = {}, peerDependenciesMeta = {} } = manifest;
  return Object.fromEntries(
    Object.keys(peerDependencies)
      .filter((name) => !peerDependenciesMeta[name]?.optional)
      .map((name) => [name, PEERS[name]!]),
  );
}
