import { IsNotEmpty, IsOptional, IsPositive, IsString } from 'class-validator';

/** What the shop needs of the `data` of `transaction.completed` (section 2 of the service's page). */
export class CompletedPayment {
  @IsString()
  @IsNotEmpty()
  transactionId!: string;

  @IsPositive()
  amount!: number;

  /** The reference the payment was asked for with. One that was not asked for by us may have none. */
  @IsOptional()
  @IsString()
  externalReference?: string | null;
}
