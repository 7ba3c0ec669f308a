import type { Checks } from './checks.ts';
import type { PackedPackage } from './packed-package.ts';

/** What every part works with. */
export interface SmokeContext {
  /** Root of the repository. */
  readonly root: string;
  /** An empty folder of this part's own, removed at the end. It is outside the repository. */
  readonly folder: string;
  /** `nestjs-payments`, packed as it would be published. */
  readonly payments: PackedPackage;
  /** `nestjs-payments-console`, packed as it would be published. */
  readonly consolePackage: PackedPackage;
  /** `payments-emulator`, packed as it would be published. */
  readonly emulator: PackedPackage;
  /** Whether the whole matrix runs (`--all`) or the representative selection that CI runs. */
  readonly all: boolean;
  /** The Node that runs this script, and its version. */
  readonly node: NodeProgram;
  /** The oldest Node that `engines` allows; installed once, on first use. */
  readonly oldestNode: () => Promise<NodeProgram>;
}

/** A Node to run an application on. */
export interface NodeProgram {
  /** Absolute path of the executable. */
  readonly path: string;
  /** For titles, for example `Node 22.13.0`. */
  readonly name: string;
}

/**
 * One group of checks that can run alone: `npm run smoke -- <name>`. Each file in `parts/` exports one as `part`, and its
 * name is the file's name.
 */
export interface SmokePart {
  /** What it proves, for `npm run smoke -- --list`. */
  readonly description: string;
  /** Runs the checks. The title of a check that proves a promise starts with the promise's id: `AP-04 …`. */
  run(context: SmokeContext, checks: Checks): Promise<void>;
}
