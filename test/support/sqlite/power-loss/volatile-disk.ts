import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { FileOperation } from './recorder.js';

/** Smallest part of a write that a disk writes whole, in bytes. */
const SECTOR = 512;

/**
 * Which unsynced operations are on the disk after a power loss: none, all, only the first ones, any subset, or any
 * subset of their sectors.
 */
export type Survival = 'none' | 'all' | 'first' | 'any' | 'sectors';
export const SURVIVALS: readonly Survival[] = ['none', 'all', 'first', 'any', 'sectors'];

type Change = Pick<FileOperation, 'kind' | 'offset' | 'data'>;

/** The content of a file: what is on the disk, and what is only in the cache. */
class CachedFile {
  #durable: Buffer = Buffer.alloc(0);
  #unsynced: Change[] = [];

  change(operation: Change): void {
    this.#unsynced.push(operation);
  }

  sync(): void {
    this.#durable = this.after(this.#unsynced);
    this.#unsynced = [];
  }

  survivor(survival: Survival, random: () => number): Buffer {
    return this.after(surviving(this.#unsynced, survival, random).flatMap(sectors));

    function sectors(change: Change): Change[] {
      if (survival !== 'sectors' || change.kind !== 'write') return [change];
      const { offset, data } = change;
      const parts: Change[] = [];
      for (let from = 0; from < data.length;) {
        const to = Math.min(data.length, from + SECTOR - ((offset + from) % SECTOR));
        if (random() < 0.5) {
          parts.push({ kind: 'write', offset: offset + from, data: data.subarray(from, to) });
        }
        from = to;
      }
      return parts;
    }
  }

  private after(changes: readonly Change[]): Buffer {
    const end = (length: number, { kind, offset, data }: Change): number =>
      kind === 'truncate' ? offset : Math.max(length, offset + data.length);
    const longest = changes.reduce((length, change) => Math.max(length, end(0, change)), 0);
    const content = Buffer.alloc(Math.max(longest, this.#durable.length));
    this.#durable.copy(content);
    let length = this.#durable.length;
    for (const change of changes) {
      if (change.kind === 'write') change.data.copy(content, change.offset);
      else if (change.offset < length) content.fill(0, change.offset, length);
      length = end(length, change);
    }
    return content.subarray(0, length);
  }
}

/** Files of one folder on a disk with a cache that loses what was not synced, entries of the folder included. */
export class VolatileDisk {
  readonly #current = new Map<string, CachedFile>();
  readonly #durable = new Map<string, CachedFile>();
  #unsynced: { readonly path: string; readonly file: CachedFile | null }[] = [];

  /** @param honest `false` for a disk that ignores syncs, to prove that the test detects lost data. */
  constructor(private readonly honest = true) {}

  apply(operation: FileOperation): void {
    const { kind, path } = operation;
    const file = this.#current.get(path);
    switch (kind) {
      case 'create': {
        // Another process created the file at the same time.
        if (file !== undefined) return;
        const created = new CachedFile();
        this.#current.set(path, created);
        this.#unsynced.push({ path, file: created });
        return;
      }
      case 'unlink':
        this.#current.delete(path);
        this.#unsynced.push({ path, file: null });
        return;
      case 'sync':
        if (file === undefined) this.#syncFolder();
        else if (this.honest) file.sync();
        return;
      case 'write':
      case 'truncate':
        file?.change(operation);
    }
  }

  /** Writes the files as a power loss leaves them, into another folder. SQLite recreates its shared-memory file. */
  losePower(folder: string, survival: Survival, random: () => number): void {
    const entries = new Map(this.#durable);
    // File systems keep the order of entries.
    const order = survival === 'any' || survival === 'sectors' ? 'first' : survival;
    for (const { path, file } of surviving(this.#unsynced, order, random)) {
      if (file === null) entries.delete(path);
      else entries.set(path, file);
    }
    for (const [path, file] of entries) {
      if (path.endsWith('-shm')) continue;
      writeFileSync(join(folder, basename(path)), file.survivor(survival, random));
    }
  }

  #syncFolder(): void {
    for (const { path, file } of this.#unsynced) {
      if (file === null) this.#durable.delete(path);
      else this.#durable.set(path, file);
    }
    this.#unsynced = [];
  }
}

/** The items that survive. With the survival `sectors`, all items: a later step removes parts of them. */
function surviving<T>(items: readonly T[], survival: Survival, random: () => number): readonly T[] {
  if (survival === 'none') return [];
  if (survival === 'first') return items.slice(0, Math.floor(random() * (items.length + 1)));
  if (survival === 'any') return items.filter(() => random() < 0.5);
  return items;
}
