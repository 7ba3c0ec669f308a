import { join } from 'node:path';
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
/** Installs the packages with several versions of npm. */
export const part: SmokePart = {
  description: 'npm 10 and 11 install without a warning',
  async run({ payments, consolePackage, emulator, folder }, checks) {
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
