import { describe, expect, it } from '@jest/globals';
import { byteaArray, textArray } from './array-parameters.js';

/** Integers of four bytes in PostgreSQL's byte order. */
const int32s = (...numbers: number[]): Buffer =>
  Buffer.concat(
    numbers.map((number) => {
      const bytes = Buffer.alloc(4);
      bytes.writeInt32BE(number);
      return bytes;
    }),
  );

describe("arrays in PostgreSQL's binary format", () => {
  it('byteaArray contains the bytes unchanged, and marks elements that are NULL', () => {
    const bytes = Buffer.from([0, 0x5c, 0xff]);
    expect(byteaArray([bytes, null, Buffer.alloc(0)])).toEqual(
      Buffer.concat([int32s(1, 1, 17, 3, 1, 3), bytes, int32s(-1, 0)]),
    );
  });

  it('textArray contains texts as UTF-8, without escapes', () => {
    const text = '{"a\\",NULL} €';
    const bytes = Buffer.from(text);
    expect(textArray([text, 'NULL'])).toEqual(
      Buffer.concat([int32s(1, 0, 25, 2, 1, bytes.length), bytes, int32s(4), Buffer.from('NULL')]),
    );
  });

  it('textArray returns an empty array if there are no texts', () => {
    expect(textArray([])).toEqual(int32s(1, 0, 25, 0, 1));
  });
});
