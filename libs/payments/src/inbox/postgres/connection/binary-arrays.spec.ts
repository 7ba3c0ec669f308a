import { describe, expect, it } from '@jest/globals';
import { byteaArray, textArray } from './binary-arrays.js';

/** Numbers of four bytes as PostgreSQL reads them. */
const int32s = (...numbers: number[]): Buffer =>
  Buffer.concat(
    numbers.map((number) => {
      const four = Buffer.alloc(4);
      four.writeInt32BE(number);
      return four;
    }),
  );

describe('an array in the binary format of PostgreSQL', () => {
  it('holds bytes as they are, and says which are NULL', () => {
    const bytes = Buffer.from([0, 0x5c, 0xff]);
    expect(byteaArray([bytes, null, Buffer.alloc(0)])).toEqual(
      Buffer.concat([int32s(1, 1, 17, 3, 1, 3), bytes, int32s(-1, 0)]),
    );
  });

  it('holds texts by their bytes in UTF-8, and escapes nothing', () => {
    const text = '{"a\\",NULL} €';
    const bytes = Buffer.from(text);
    expect(textArray([text, 'NULL'])).toEqual(
      Buffer.concat([int32s(1, 0, 25, 2, 1, bytes.length), bytes, int32s(4), Buffer.from('NULL')]),
    );
  });

  it('may be empty', () => {
    expect(textArray([])).toEqual(int32s(1, 0, 25, 0, 1));
  });
});
