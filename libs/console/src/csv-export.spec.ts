import { describe, expect, it } from '@jest/globals';
import { cellOf } from './csv-export.js';

describe('a field of a CSV file', () => {
  it.each([
    ['order-1', 'order-1'],
    ['', ''],
    ['a "quoted" text', '"a ""quoted"" text"'],
    ['a, b', '"a, b"'],
    ['two\r\nlines', '"two\r\nlines"'],
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['-1+1|cmd', "'-1+1|cmd"],
    ['\t=1', "'\t'=1"],
    ['\r=1', `"'\r'=1"`],
    ['＝1+1', "'＝1+1"],
    ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
    ['a;=1+1', `"a;'=1+1"`],
    ['a\n@b', `"a\n'@b"`],
    ['-12.50', '-12.50'],
    ['1250.00', '1250.00'],
  ])(
    'OP-30 the CSV field of %j is quoted as RFC 4180 requires, and a spreadsheet does not run the field as a formula',
    (text, field) => {
      expect(cellOf(text)).toBe(field);
    },
  );

  it('OP-30 a missing value is an empty field, and a time is in ISO 8601', () => {
    expect(cellOf(null)).toBe('');
    expect(cellOf(new Date(0))).toBe('1970-01-01T00:00:00.000Z');
    expect(cellOf(3)).toBe('3');
  });
});
