import { IsIn, Matches } from 'class-validator';
import { PRODUCTS } from './products.js';

/** What a form of the shelf sends. */
export class Purchase {
  /** `id` of the product. */
  @IsIn(PRODUCTS.map(({ id }) => id), { message: 'product must be one of the shelf' })
  product!: string;

  /** The ticket that the shelf was shown with. */
  @Matches(/^[0-9a-z]{12}$/, { message: 'ticket must be the one of the shelf; load it again' })
  ticket!: string;
}
