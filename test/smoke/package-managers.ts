/** A package manager that is installed from the npm registry. */
export interface PackageManager {
  /** Name in the titles of checks, for example `pnpm 10.34.9`. */
  readonly name: string;
  /** Command of the package manager. It is also part of folder names. */
  readonly command: string;
  /** Package and version to install from the registry. */
  readonly dependency: Readonly<Record<string, string>>;
  /** Path of its program below `node_modules`. */
  readonly program: string;
  /** Files that an application needs, by name. */
  readonly files: (registry: string) => Readonly<Record<string, string>>;
  /** Matches a warning about a dependency that is missing, unneeded or of a wrong version. */
  readonly warning: RegExp;
  /** `NODE_OPTIONS` to run the application with. */
  readonly nodeOptions: (folder: string) => string;
}

/** An npm 10, which Node 22 contains, and an npm 11, which Node 24 contains. */
export const NPM_VERSIONS: readonly string[] = ['10.9.9', '11.21.2'];
const PNPM_VERSION = '10.34.9';
const YARN_VERSION = '4.18.1';

/** pnpm without hoisting, so that no package can import a package that it does not declare. */
export const PNPM: PackageManager = {
  name: `pnpm ${PNPM_VERSION}`,
  command: 'pnpm',
  dependency: { pnpm: PNPM_VERSION },
  program: 'pnpm/bin/pnpm.cjs',
  files: (registry) => ({
    'pnpm-workspace.yaml': [
      'autoInstallPeers: false',
      'hoist: false',
      'nodeLinker: isolated',
      `registry: ${registry}`,
      'storeDir: ./.store',
      'strictPeerDependencies: true',
    ].join('\n'),
  }),
  warning: /\bWARN\b|\bunmet\b|\bmissing peer\b/,
  nodeOptions: () => '',
};

/**
 * Yarn without `node_modules`: Node loads packages from zip archives. `yarn node` sets the same `NODE_OPTIONS`. CommonJS
 * applications also need the loader, because this package and Nest 12 are ES modules. The SQLite thread uses the loader
 * because worker threads inherit `NODE_OPTIONS`.
 */
export const YARN_PNP: PackageManager = {
  name: `Yarn ${YARN_VERSION} PnP`,
  command: 'yarn',
  dependency: { '@yarnpkg/cli-dist': YARN_VERSION },
  program: '@yarnpkg/cli-dist/bin/yarn.js',
  files: (registry) => ({
    '.yarnrc.yml': [
      'enableGlobalCache: false',
      'enableImmutableInstalls: false',
      'enableTelemetry: false',
      'nodeLinker: pnp',
      `npmRegistryServer: ${registry}`,
    ].join('\n'),
    'yarn.lock': '',
  }),
  // Codes for a missing peer, a peer of a wrong version, and the summary of both.
  warning: /YN00(?:02|60|86)/,
  nodeOptions: (folder) =>
    `--require ${folder}/.pnp.cjs --experimental-loader ${folder}/.pnp.loader.mjs`,
};
