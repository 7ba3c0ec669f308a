import type { Checks } from './checks.ts';
import type { PackedPackage } from './packed-package.ts';

/** Packages, folder and options of a part. */
export interface SmokeContext {
  /** Root of the repository. */
  readonly root: string;
  /** An empty folder for this part, outside the repository. It is removed after the part. */
  readonly folder: string;
  /** `nestjs-payments`, packed as it would be published. */
  readonly payments: PackedPackage;
  /** `nestjs-payments-console`, packed as it would be published. */
  readonly consolePackage: PackedPackage;
  /** `payments-emulator`, packed as it would be published. */
  readonly emulator: PackedPackage;
  /** The adapters of engines, packed as they would be published. */
  readonly engines: readonly PackedPackage[];
  /** Whether the whole matrix runs (`--all`) or the representative selection that CI runs. */
  readonly all: boolean;
  /** The Node that runs this script. */
  readonly node: NodeProgram;
  /** The oldest Node that `engines` allows. The first call installs it. */
  readonly oldestNode: () => Promise<NodeProgram>;
}

/** A Node executable to run an application with. */
export interface NodeProgram {
  /** Absolute path of the executable. */
  readonly path: string;
  /** Name in the titles of checks, for example `Node 22.13.0`. */
  readonly name: string;
}

/**
 * A group of checks. `npm run smoke -- <name>` runs one part. Each file in `parts/` exports its part as `part`, and the
 * name of the part is the name of the file.
 */
export interface SmokePart {
  /** What the part checks, for `npm run smoke -- --list`. */
  readonly description: string;
  /** Runs the checks. The title of a check that proves a promise starts with the promise's id: `AP-04 …`. */
  run(context: SmokeContext, checks: Checks): Promise<void>;
}
