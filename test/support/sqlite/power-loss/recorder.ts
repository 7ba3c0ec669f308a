import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One operation on a file, as `recorder.c` recorded it. */
export interface FileOperation {
  readonly kind: 'create' | 'write' | 'truncate' | 'sync' | 'unlink';
  readonly path: string;
  /** For a write: its position in the file, in bytes. For a truncation: the new length, in bytes. */
  readonly offset: number;
  readonly data: Buffer;
}

/** The reason why this machine cannot record file operations; `null` if it can. */
export function whyNotRecorded(): string | null {
  if (process.platform !== 'linux') return 'LD_PRELOAD needs Linux';
  return compiler() === null ? 'there is no C compiler (cc, gcc or clang)' : null;
}

/** A recorder, compiled for this machine. */
export class Recorder {
  readonly #folder = mkdtempSync(join(tmpdir(), 'payments-recorder-'));
  readonly #library = join(this.#folder, 'recorder.so');
  readonly #log = join(this.#folder, 'operations');

  constructor() {
    const source = join(import.meta.dirname, 'recorder.c');
    execFileSync(compiler()!, ['-shared', '-fPIC', '-O1', '-o', this.#library, source, '-ldl']);
  }

  /** Environment variables that make a process record its operations on files whose path starts with `prefix`. */
  environment(prefix: string): Record<string, string> {
    return { LD_PRELOAD: this.#library, RECORDER_PREFIX: prefix, RECORDER_LOG: this.#log };
  }

  /** The operations recorded so far, in order. */
  operations(): FileOperation[] {
    const log = readFileSync(this.#log);
    const operations: FileOperation[] = [];
    for (let at = 0; at < log.length;) {
      const [kind, pathLength, offset, dataLength] = [0, 8, 16, 24].map((field) =>
        Number(log.readBigUInt64LE(at + field)),
      ) as [number, number, number, number];
      const path = at + 32;
      const data = path + pathLength;
      at = data + dataLength;
      operations.push({
        kind: KINDS[String.fromCharCode(kind)]!,
        path: log.toString('utf8', path, data),
        offset,
        data: log.subarray(data, at),
      });
    }
    return operations;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const KINDS: Readonly<Record<string, FileOperation['kind']>> = {
  C: 'create',
  W: 'write',
  T: 'truncate',
  S: 'sync',
  U: 'unlink',
};

function compiler(): string | null {
  const folders = (process.env['PATH'] ?? '').split(':');
  const candidates = ['cc', 'gcc', 'clang'].flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  );
  return candidates.find((file) => existsSync(file)) ?? null;
}
