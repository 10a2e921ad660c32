// Colour says what kind of time it is: at most eight kinds, distinguished by people who see few colours, and separated in
// luminance. Waiting and idle time have stripes, copies have dots: nothing is said by colour alone.

export interface Palette {
  dark: boolean;
  background: string;
  band: string; // every second lane
  grid: string;
  line: string; // of the axis
  text: string;
  faint: string;
  accent: string;
  warn: string;
  kinds: string[]; // by kind: operator, annotation, python, call, compute, communication, copy, wait, other
  idle: string;
  idleText: string;
  step: [string, string];
  counter: string;
  selection: string;
}

export const kindOperator = 0;
export const kindCommunication = 5;
export const kindCopy = 6;
export const kindWait = 7;

const light: Palette = {
  dark: false,
  background: "#ffffff", band: "#f7f8fa", grid: "#e6e9ee", line: "#d9dee6", text: "#1b2430", faint: "#5b6675", accent: "#0b57d0", warn: "#9a3412",
  kinds: ["#a9c9ee", "#e4dcc6", "#d9c452", "#5b7fab", "#0f6b56", "#d2571b", "#7c51a6", "#c3c7cd", "#8a8f98"],
  idle: "#f4c062", idleText: "#3d2600", step: ["#dfe5ee", "#cdd6e3"], counter: "#5b7fab", selection: "#0b1f44",
};

const dark: Palette = {
  dark: true,
  background: "#14181d", band: "#191e24", grid: "#2a313a", line: "#333c47", text: "#e8ecf1", faint: "#a3adba", accent: "#8ab4f8", warn: "#fdba74",
  kinds: ["#4f77a6", "#5f594a", "#a08d2a", "#93b4dc", "#2fae8f", "#ec8246", "#b18ad6", "#59616b", "#7f8791"],
  idle: "#8a6414", idleText: "#ffffff", step: ["#2b3440", "#37424f"], counter: "#93b4dc", selection: "#ffffff",
};

export const paletteFor = (isDark: boolean): Palette => (isDark ? dark : light);

export type Rgb = readonly [number, number, number];

export function rgb(hex: string): Rgb {
  const value = Number.parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  return [0, 1, 2].map((index) => Math.round(from[index] + (to[index] - from[index]) * share)) as unknown as Rgb;
}

// As a pixel of an image: 0xAABBGGRR.
export const withAlpha = (color: Rgb, alpha: number) => ((Math.round(alpha * 255) << 24) | (color[2] << 16) | (color[1] << 8) | color[0]) >>> 0;

export const css = (color: Rgb) => `rgb(${color[0]} ${color[1]} ${color[2]})`;

// Relative luminance of WCAG 2, 0 to 1.
export function luminance(color: Rgb): number {
  const [r, g, b] = color.map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: Rgb, b: Rgb): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

const black: Rgb = [12, 18, 26];
const white: Rgb = [255, 255, 255];

export const textOn = (color: Rgb): string => (contrast(color, black) >= contrast(color, white) ? "#0c121a" : "#ffffff");

// Colours with what the drawing needs of them: computed once a theme.
// `shades`: pixels by how much of them is busy.
export interface KindInk { fill: string; dimmed: string; text: string; color: Rgb; edge: string; shades: Uint32Array; dimShades: Uint32Array }

export interface Inks { palette: Palette; kinds: KindInk[]; idle: KindInk; background: Rgb }

const mostShade = 255;

// From what is hardly busy, which can still be seen, to the full colour.
const shadesOf = (background: Rgb, color: Rgb) =>
  Uint32Array.from({ length: mostShade + 1 }, (_, level) => withAlpha(mix(background, color, 0.3 + (0.7 * level) / mostShade), 1));

export const shadeOf = (shades: Uint32Array, busy: number): number => shades[Math.min(mostShade, Math.round(busy * mostShade))];

export function inksOf(palette: Palette): Inks {
  const background = rgb(palette.background);
  const ink = (hex: string): KindInk => {
    const color = rgb(hex);
    const dimColor = mix(background, color, 0.22);
    return {
      fill: hex, color, dimmed: css(dimColor), shades: shadesOf(background, color), dimShades: shadesOf(background, dimColor), text: textOn(color),
      edge: css(mix(color, palette.dark ? white : black, 0.35)),
    };
  };
  return { palette, background, kinds: palette.kinds.map(ink), idle: { ...ink(palette.idle), text: palette.idleText } };
}
