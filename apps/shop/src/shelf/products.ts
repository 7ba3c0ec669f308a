/** Something the shop sells. */
export interface Product {
  /** Begins the references of its orders, and names its drawing. */
  readonly id: string;
  readonly name: string;
  readonly about: string;
  readonly price: number;
}

/** Everything the shop sells, in the order of the shelf. */
export const PRODUCTS: readonly Product[] = [
  { id: 'tea', name: 'Kericho tea', about: 'Loose black tea, 250 g', price: 350 },
  { id: 'coffee', name: 'Nyeri coffee', about: 'Whole beans, 250 g', price: 420.5 },
  { id: 'mandazi', name: 'Mandazi', about: 'Six, fried this morning', price: 99.99 },
  { id: 'sugar', name: 'Cane sugar', about: 'Brown, 1 kg', price: 180 },
  { id: 'milk', name: 'Fresh milk', about: 'A bottle, 500 ml', price: 65.1 },
  { id: 'bread', name: 'Bread', about: 'A loaf, baked here', price: 120 },
];
