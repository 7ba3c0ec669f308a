/** PostgreSQL's numbers of the types. */
const BYTEA = 17;
const TEXT = 25;
/** Dimensions, whether any is NULL, the type; of the one dimension, its length and first index; 4 bytes each. */
const HEADER = 20;
const NULL = -1;

/**
 * A `bytea[]` in PostgreSQL's binary format, which the driver sends if it is given a Buffer. It writes an array as text,
 * in which each byte is two characters: a receive takes a fifth less of this process's time with binary arrays.
 */
export function byteaArray(items: readonly (Buffer | null)[]): Buffer {
  const lengths = items.map((item) => item?.length ?? NULL);
  return arrayOf(BYTEA, lengths, (array, at, place) => items[place]!.copy(array, at));
}

/** A `text[]` in binary format: nothing in it is escaped. */
export function textArray(items: readonly (string | null)[]): Buffer {
  const lengths = items.map((item) => (item === null ? NULL : Buffer.byteLength(item)));
  return arrayOf(TEXT, lengths, (array, at, place) => array.write(items[place]!, at));
}

function arrayOf(
  type: number,
  lengths: readonly number[],
  write: (array: Buffer, at: number, place: number) => void,
): Buffer {
  const size = lengths.reduce((sum, length) => sum + 4 + Math.max(0, length), HEADER);
  const array = Buffer.allocUnsafe(size);
  const header = [1, lengths.includes(NULL) ? 1 : 0, type, lengths.length, 1];
  let at = 0;
  for (const number of header) at = array.writeInt32BE(number, at);
  for (const [place, length] of lengths.entries()) {
    at = array.writeInt32BE(length, at);
    if (length === NULL) continue;
    write(array, at, place);
    at += length;
  }
  return array;
}
