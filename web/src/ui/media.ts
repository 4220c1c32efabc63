// What the window is like, as the style sheets see it too.
import { useEffect, useState } from 'preact/hooks';

export const NARROW = '(max-width: 860px)'; // the list lies over the conversation
export const MEDIUM = '(max-width: 1180px)'; // the chat settings do

export function useMedia(query: string): boolean {
  const [fits, setFits] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const look = (): void => setFits(media.matches);
    media.addEventListener('change', look);
    return () => media.removeEventListener('change', look);
  }, [query]);
  return fits;
}
