import { Type } from 'class-transformer';
import { IsInt, IsOptional, Matches, Max, Min } from 'class-validator';

const LIMIT = { message: 'limit must be a whole number from 1 to 200' };

/** Query of `GET /api/ledger/page`, such as `?limit=50&before=120`. */
export class LedgerPageDto {
  /** `next` of another page, for the entries that are older. Default: the newest entries. */
  @IsOptional()
  @Matches(/^\d{1,18}$/, { message: 'before must be the value of next of another page' })
  before?: string;

  /** Number of entries, 1 to 200. Default 20. */
  @Type(() => Number)
  @Min(1, LIMIT)
  @Max(200, LIMIT)
  @IsInt(LIMIT)
  limit: number = 20;
}
