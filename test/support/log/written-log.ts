import { jest } from '@jest/globals';

/** Records what is written to stdout and stderr, instead of writing it. */
export class WrittenLog implements Disposable {
  #text = '';
  readonly #streams = [process.stdout, process.stderr].map((stream) =>
    jest.spyOn(stream, 'write').mockImplementation((chunk) => {
      this.#text += String(chunk);
      return true;
    }),
  );

  /** The lines so far. */
  get lines(): string[] {
    return this.#text.split('\n').filter((line) => line !== '');
  }

  [Symbol.dispose](): void {
    for (const stream of this.#streams) stream.mockRestore();
  }
}
