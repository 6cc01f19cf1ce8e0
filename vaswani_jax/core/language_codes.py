"""The codes of all languages: ISO 639-1, 639-2, 639-3 and 639-5, and older ones.

Made from Debian's package iso-codes 4.15 and the Unicode CLDR 47.
"""

import functools

# Two letters.
TWO_LETTERS = frozenset(
    """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu
cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi
ho hr ht hu hy hz ia id ie ig ii ik in io is it iu iw ja ji jv jw ka kg ki kj kk kl km
kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mo mr ms mt my na
nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd
se sg sh si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw
ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
""".split()
)
# Three letters, those that begin with the same two in one word: "aab" stands for aab,
# "aabc" for aab and aac.
_THREE_LETTERS = """
aaabcdefghiklmnopqrstuvwxz ababcdefghijklmnopqrstuvwxyz acabdefhiklmnpqrstuvwxyz
adabdefghijlnopqrstuwxyz aeabcdeklmnqrsuwyz afabdeghiknoprstuz
agabcdefghijklmnopqrstuvwxyz ahabghiklmnoprst aiabcdefghijklmnopqrstwxy ajaginpstuwz
akabcdefghijklmopqrstuvwxyz alabcdefghijklmnopqrstuvwxyz amabcefghijklmnopqrstuvwxyz
anabcdefghijklmnopqrstuvwxyz aoabcdefgijklmnrstuxz apabcdefghijklmnopqrstuvwxyz
aqacdgklmnprtz arabcdeghijklmnopqrstuvwxyz asabcdefghijklmnopqrstuvwxyz
atabcdeghijklmnopqrstuvwxyz auabcdefghijklmnopqrstuwxyz avabdeiklmnostuv
awabcdeghikmnorstuvwxy axbegklmx ayabcdeghiklmnopqrstuxz azabcdegjmnotz
baabcdefghijklmnopqrstuvwxyz bbabcdefghijklmnopqrstuvwxy bcabcdefghijklmnopqrstuvwyz
bdabcdefghijklmnopqrstuvwxyz beabcdefghijklmnopqrstuvwxyz bfabcdefghijklmnopqrstuwxyz
bgabcdefgijklmnopqrstuvwxyz bhabcdefghijklmnopqrstuvwxyz biabcdefghklmnopqrstuvwxyz
bjabcdefghijklmnopqrstuvwxyz bkabcdfghijklmnopqrstuvwxyz blabcdefghijklmnopqrstvwxyz
bmabcdefghijklmnopqrstuvwxz bnabcdefgijklmnopqrstuvwxyz boabdefghijklmnopqrstuvwxyz
bpacdeghijklmnopqrstuvwxyz bqabcdfghijklmnopqrstuvwxyz brabcdefghijklmnopqrstuvwxyz
bsabcefghijklmnopqrstuvwxy btabcdefghijkmnopqrstuvwxyz buabcdefghijklmnopqrstuvwxyz
bvabcdefghijklmnopqrtuvwxyz bwabcdefghijklmnopqrstuwxyz bxabcdefghijklmnopqrsuvwz
byabcdefghijklmnopqrstvwxz bzabcdefghijklmnopqrstuvwxyz caabcdefghijklmnopqrstuvwxyz
cbabcdgijklnoqrstuvwy cccdeghjlmnopqrs cdacdefhijmnorsyz ceabgklnsty cfadgm cgacgk
chabcdefghijklmnopqrtuvwxyz ciabcdehkmnprwy cjaehikmnoprsvy ckabhlmnoqrstuvxyz
clacdehijklmostuwy cmacegiklmnorst cnabcghiklopqrstuwx coabcdefghjklmnopqrstuvwxyz
cpabcefginopsuxy cqdu crabcdefghijklmnopqrstvwxyz csabcdefghijklmnopqrstuvwxyz
ctacdeghlmnopstuyz cuabchijklopqrstuvwxy cvgn cwabdegt cxh cyabmo czehknot
daacdefghijklmnopqrsuvwxyz dbabdefgijlmnopqrtuvwy dccr ddadegijnorsw
decdefghiklmnpqrsuvz dgabcdeghiklnorstwxz dhdgilmnorsuvwx diabcdfghijklmnopqrstuvwxyz
djabcdefijklmnoruw dkagklrsx dlgkmn dmabcdefgklmnorsuvwxy dnadegijknortuvwy
doabcefhiklnopqrstvwxyz dpp drabcdeghilnoqrstuwy dsbehiklnoqz dtabdhikmnoprstuy
duabcdefghijklmnopqrstuvwxyz dva dwaklrsuwyz dyabdgimnoruy dzadeglno eaa ebcgkoru ecrsy
eee efaei egalmoxy ehsu eiptv eja ekaegiklmopry elehiklmopux emabegikmnpqsuwxyz
enabcdfghlmnoqruvwx eot epio eraghikorstw eseghiklmnoqstuxy etbchnorstuxz eudqs evehn
eweo ext eyao ezae faabdfghijklmnoprstuxyz fbl fcs fer ffim fgr fiaefjlnprtuw fkkv
flahilnry fmpu fnbgi fodimnrsx fpe fqs fracdekmopqrsty fsels fubcdefhijlmnqrtuvy fvr
fwae gaabcdefghijklmnopqrstuvwxyz gbabcdefghijklmnopqrsuvwxyz gccdeflnrt
gdabcdefghijklmnoqrstux geabcdfghijklmoqrsvwxyz gfktx ggabdegklnortuw ghacehklnorst
giabcdeghilmnopqrstuwxyz gjkmnru gkadenopu glabcdeghijkloruvwy gmabdeghlmnqruvwxyz
gnabcdeghijklmnoqrtuwz goabcdefghijklmnopqrstuvwxyz gpaen gqainru
grabcdeghijkmnoqrstuvwxyz gseglmnopsw gtaiu guabcdefghijklmnopqrstuvwxz gvacefjlmnoprsy
gwabcdefgijmnrtuwx gxx gyabdefgilmnoryz gzain haabcdefghijklmnopqrstuvwxyz hbabnosu hcah
hdnsy heabdghimr hgmw hhiry hiabdfghijklmnortwx hji hkaehkns hlabdetu
hmabcdefghijklmnopqrstuvwxyz hnadeghijnosu hoabcdehijklmoprstvwyz hpos hracekmoprtuvwxz
hsbhlns htiosux hubcdefghijklmnopqrstuvwxyz hvceknv hwaco hyaewx iainr ibabdeghilmnoruy
icaehlr idabcdeiorstu ifabefkmuy igbeglmnosw ihbipw iiinr ijcejnos ikehikloprstuvwxz
ilabegiklmopsuvw imailnorsty inabcdeghjlmnopstz ioruw ipiko iquw iraehiknoruxy
isacdeghiklmnortu itabcdeiklmorstvwxyz ium ivbv iwkmos ixcl iyaox izhimrz
jaabcdefhjklmnoqrstuvxyz jbeijkmnortuw jcst jdagt jebeghiklnrtu jgbeko jhis
jiabcdeghilmoqtuvy jjer jkamoprsu jles jmabcdilnrswx jnadgijls jobdgrsw jpanrx jqr
jrabrtu jsl juabcdhiklmnoprstuwy jvdn jwi jyaey kaabcdefghijklmnopqrstuvwxyz
kbabcdeghijklmnopqrstuvwxyz kcabcdefghijklmnopqrstuvwxyz kdacdefghijklmnopqrtuvwxyz
keabcdefghijklmnopqrstuvwxyz kfabcdefghijklmnopqrstuvwxyz kgabcdefghijklmnopqrstuvwxy
khabcdefghijklmnopqrstuvwxyz kiabcdefghijklmnopqrstuvwxyz kjabcdeghijklmnopqrstuvxyz
kkabcdefghijklmnopqrstuvwxyz klabcdefghijklmnopqrstuvwxyz kmabcdefghijklmnopqrstuvwxyz
knabcdefgijklmnopqrstuvwxyz koacdefghijklmnopqrstuvwyz kpabcdefghijklmnopqrstuvwxyz
kqabcdefghijklmnopqrstuvwxyz krabcdefhijklmnoprstuvwxyz ksabcdefghijklmnopqrstuvwxyz
ktabcdefghijklmnopqrstuvwxyz kuabcdefghijklmnopqrstuvwxyz kvabcdefghijklmnopqrstuvwxyz
kwabcdefghijklmnopqrstuvwxyz kxabcdefhijklmnopqrstvwxyz kyabcdefghijklmnopqrstuvwxyz
kzabcdefghijklmnopqrstuvwxyz laabcdefghijklmnopqrstuvwxyz lbbcefgijklmnoqrstuvwxyz
lccdefhlmpqs ldabdghijklmnopq leabcdefghijklmnopqrstuvwxyz lfan lgabghiklmnoqrtuz
lhahilmnpstu liabcdefghijklmnopqrstuvwxyz ljaeilpwx lkabcdehijlmnorstuy
llabcdefghijklmnopqsux lmabcdefghijklmnopqruvwxy lnabdghijlmnsuwz
loabcefghijklmnopqrstuvwxyz lpaenox lqr lracegiklmnortvz lsabcdehilmnoprstvwy
ltcghinosuz luabcdefgijklmnopqrstuvwyz lvaiklsu lwaeghlmostuw lxm lyagn lzhlnz
maabcdefghijklmnopqrstuvwxyz mbabcdefhijklmnopqrstuvwxyz mcabcdefghijklmnopqrstuvwxyz
mdabcdefghijklmnpqrstuvwxyz meabcdefghijklmnopqrstuvwyz mfabcdefghijklmnopqrstuvwxyz
mgabcdefghijklmnopqrstuvwxyz mhabcdefgijklmnopqrstuwxyz miabcdefghijklmnopqrstuwxyz
mjbcdeghijklmnopqrstuvwxyz mkabcdefghijklmnopqrstuvwxyz mlabcefghijklmnopqrstuvwxz
mmabcdefghijklmnopqrtuvwxyz mnabcdefghijklmnopqrstuvwxyz moacdefghijklmnopqrstuvwxyz
mpabcdeghijklmnopqrstuvwxyz mqabcefghijklmnopqrstuvwxyz mrabcdefghijklmnopqrstuvwxyz
msabcdefghijklmnopqrstuvwxyz mtabcdefghijklmnopqrstuvwxy muabcdeghijklmnopqrstuvxyz
mvabdefghiklnopqrstuvwxyz mwabcdefghijklmnopqrstuvwz mxabcdefghijklmnopqrstuvwxyz
myabcdefghjklmnoprstuvwxyz mzabcdeghijklmnopqrstuvwxyz naabcdefghijklmnopqrstuvwxyz
nbabcdefghijklmnopqrstuvwxy ncabcdefghijklmnopqrstuxz ndabcdefghijklmnopqrstuvwxyz
neabcdefghijkmnopqrstuvwxyz nfadlru ngabcdefghijklmnpqrstuvwxyz
nhabcdefghikmnopqrtuvwxyz niabcdefghijklmnoqrstuvwxyz njabdhijlmnorstuxyz
nkabcdefghijkmnopqrstuvwxz nlacdegijklmnoqruvwxyz nmabcdefghijklmnopqrstuvwxyz
nnabcdefghijklmnopqrstuvwxyz noabcdefghijklmnopqrstuvwyz npabghilnosuxy nqgklmnoqty
nrabcefgiklmnprtuxz nsabcdefghiklmnopqrstuvwxyz ntdegijkmoprsuwxyz
nuabcdefghijklmnopqrstuvwxyz nvhmo nwabcegimorwxy nxadegiklmnoqrux
nyabcdefghijklmnopqrstuvwxy nzabdikmrsuyz oaacrv obiklmortu ocahimou odaktu ofosu
ogbcegou ohtu oiaen ojbcgipsvw okabcdeghijklmnorsuvxz oladekmortu omabcgiklnopqrtuvwxy
onabegijknoprstuwx oodgnrs opakmoty oraceghimnorstuvwxyz osacinopstux
otabdeiklmnoqrstuwxyz ouabeimn ovd owil oybdmy ozm paabcdefghiklmnopqrstuvwxyz
pbbcefghilmnoprstuvy pcabcdefghijklmnprw pdacinotu peabdefghijklmopqrsvxyz pfael
pgadgiklnsuz phadghijklmnoqrtuvw piabcdefghjlmnoprstuvwxyz pjt pkabcghnoprstu
plabcdefghijklnoqrstuvwyz pmabcdefhijklmnoqrstuwxyz pnabcdeghijklmnopqrstuvwxyz
pocefghiklmnopqrstvwxyz ppaeiklmnopqrstu pqaemw pracdefghiklmnopqrstuwxyz
psacdeghilmnopqrstuwy ptahinopqrtuvwy puabcdefgijmopqrstuwxyz pwabgimnorw pxm pyemnsuxy
pzehn quabcdefghiklmnpqrsvwxyz qvacehijlmnopswyz qwacehmst qxachlnopqrstuw qyap
raabcdfghijklmnopqrstuvwxyz rbbklp rcf rdb reabegijlmnrsty rgaeknrsu rhgp riabflmnrtu
rjgis rkabhimtw rmabcdefghiklmnopqrstuvwxyz rnbdglnprw roabcdefghlmnopruw rpnt rrimot
rsbklmnw rtchmsw rubcefghikmnopqstuyz rwaklmor rxdw rynsu rzh
saabcdefghijklmnopqrstuvwxyz sbabcdefghijklmnopqrstuvwxyz scabcefghiklnopqrstuvwx
sdabcefghjklnopqrstuvxz seabcdefghijklmnopqrstuvwyz sfbemsw sgabcdeghijklmnprstuwxyz
shabcdeghijklmnopqrstuvwxyz siabdefghijklmnopqrstuvwxyz sjabdegklmnoprstuw
skabcdefghijkmnopqrstuvwxyz slacdefghijklmnopqrstuvwxyz smabcdefghijklmnopqrstuvwxyz
snabcdefgijklmnopqrsuvwxyz soabcdeghijklmnopqrstuvwxyz spabcdegiklmnopqrstuvxy
sqahijkmnoqrstux srabcdefghiklmnopqrstuvwxyz ssabcdefghijklmnopqrstuvwxyz
stabdefghijklmnopqrstuvwy suabcegijklmnoqrstvwxyz svabcekmsx swabcefghijklmnopqrstuvwxy
sxbcegklmnorsuw syabcdiklmnorswxy szabcdeglnpsvwy taabcdefghijklmnopqrstuvwxyz
tbacdefghijklmnopqrstuvwxyz tcabcdefghiklmnopqstuwxyz tdabcdefghijklmnoqrstuvxy
teabcdefghiklmnopqrstuvwxyz tfinort tgabcdefghijklnopqrstuvwxyz thacdefhiklmnpqrstuvwxyz
tiabcdefghijklmnopqrstuvwxyz tjagijlmnopsuw tkabdefgklmnpqrstuvwxz
tlabcdfghijklmnopqrstuvwxy tmabcdefghijklmnopqrstuvwyz tnabcdefghiklmnopqrstuvwxyz
tobcdfghijklmnopqrsuvwxyz tpacefgijklmnopqrtuvwxyz tqblmnopqrtuw
trabcdefghijklmnopqrstuvwxyz tsabcdefghijklmnopqrstuvwxyz ttabcdefghijklmnopqrstuvwyz
tuabcdefghijklmnopqrstuvwxyz tvadeiklmnostuwxy twabcdefghilmnopqrtuwxy
txabceghijmnoqrstuxy tyaehijlnprstuvxyz tzahjlmnox uamnr ubailruy udaegijlmu ues ufi
ugabehnoy uhan uigsv uji ukaghiklpqrsuvwy ulabcefiklmnuwy umabcdgimnoprsu
unadegikmnpruxz uokn upiv urabcdefghijklmnoprtuvwxyz usahikpsu utaehpru uumru uvehl uwa
uya uzbns vaaefghijlmnoprsuvy vbbk vecdlmnopr vgrt vicdefglnstv vjk vkajklmnoptuz vlps
vmabcdefghijklmpqrsuvwxyz vnkmp volrt vraost vsilv vto vumnt vwa
waabcdefghijklmnopqrstuvwxyz wbabefhijklmpqrstvw wcai wddgjktuy weacdghilmnoprstuw wfg
wgabgiouwy whagku wibcefghijklmnrtuvwy wjai wkabdlruwy wlaceghiklmnorsuvwxy
wmabcdeghimnostwx wnbcdegikmnopuwy woabcdefgiklmnorswy wpc wrbghiklmnoprsuvwxyz
wsagikrsuv wtbfhikmw wuabdhlmnrtuvxy wwaborw wxaw wybimnry xaabcdegijklmnopqrstuvwy
xbabcdegijmnoprwy xcbceghlmnortuvwy xdackmoqy xebdglmprstu xfa xgabdfgilmnruw
xhacdemortuv xiabilnrsvy xjbt xkabcdefghijklnopqrstuvwxyz xlabcdeginopsuy
xmabcdefghjklmnopqrstuvwxyz xnabdghijkmnoqrstuyz xocdgikmnoprw
xpabcdefghijklmnopqrstuvwxyz xqat xrabdegimnqrtuw xsabcdehijlmnopqrsuvy
xtabcdeghijlmnopqrstuvwy xuabdgjlmnoprtu xveinos xwacdegjklortw xxbkmrt xyabjklty xzhmp
yaabcdefghijklmnopqrstuvwxyz ybabdehijklmnoxy ychlnpr ydadegk yeaceijlnrstuvy
ygailmprsuw yhadls yiadfghijklmnpqrstuvxyz ykaghiklmnortuy ylabegilmnoruy
ymabcdeghiklmnopqrstxz ynadegklnoqsu yobgiklmnrstxy ypabghkmnopz yrabeklmnoswy
yscdglmnoprsy ytalpwy yuabcdefgijklmnpqrtuwxyz yvat ywaglnqrtuw yxaglmuy yyruz yzgk
zaabcdefghijklmopqrstuvwxyz zbaceltuw zcadh zdj zeaghmn zgabhmnr zhabdinowx ziabklmnrwz
zkabdghknoprtuvz zlaejmnqsuw zmabcdefghijklmnopqrstuvwxyz znadegks zochmoqrs
zpabcdefghijklmnopqrstuvwxyz zqe zragnops zsaklmru zteglmnpqstuxy zuahlmny zwa zxx
zybgjnp zzaj
"""
# Codes of the names by which people call for languages.
CODES_BY_NAME = {
    name: code
    for code, name in (
        entry.split(":")
        for entry in """
aa:afar ab:abkhazian ae:avestan af:afrikaans ak:akan am:amharic an:aragonese ar:arabic
as:assamese av:avaric ay:aymara az:azerbaijani ba:bashkir be:belarusian bg:bulgarian
bi:bislama bm:bambara bn:bengali bo:tibetan br:breton bs:bosnian ca:catalan ce:chechen
ch:chamorro co:corsican cr:cree cs:czech cu:church-slavic cv:chuvash cy:welsh da:danish
da:dansk de:deutsch de:german dv:dhivehi dv:maldivian dz:dzongkha ee:ewe el:greek
en:english eo:esperanto es:castilian es:espanol es:spanish et:estonian eu:basque
fa:farsi fa:persian ff:fulah fi:finnish fi:suomi fil:filipino fj:fijian fo:faroese
fr:francais fr:french fy:frisian fy:western-frisian ga:irish gd:gaelic
gd:scottish-gaelic gl:galician gn:guarani gu:gujarati gv:manx ha:hausa haw:hawaiian
he:hebrew hi:hindi hmn:hmong ho:hiri-motu hr:croatian ht:haitian hu:hungarian
hy:armenian hz:herero ia:interlingua id:indonesian ie:interlingue ig:igbo ii:sichuan-yi
ik:inupiaq io:ido is:icelandic it:italian it:italiano iu:inuktitut ja:japanese
ja:nihongo jv:javanese ka:georgian kg:kongo ki:kikuyu kj:kuanyama kk:kazakh
kl:kalaallisut km:khmer kn:kannada ko:korean kr:kanuri ks:kashmiri ku:kurdish kv:komi
kw:cornish ky:kirghiz ky:kyrgyz la:latin lb:luxembourgish lg:ganda li:limburgan
ln:lingala lo:lao lt:lithuanian lu:luba-katanga lv:latvian mg:malagasy mh:marshallese
mi:maori mk:macedonian ml:malayalam mn:mongolian mr:marathi ms:malay mt:maltese
my:burmese na:nauru nb:bokmal nd:north-ndebele ne:nepali new:newari ng:ndonga nl:dutch
nl:flemish nl:nederlands nn:nynorsk no:norsk no:norwegian nr:south-ndebele nv:navajo
ny:nyanja oc:occitan oj:ojibwa om:oromo or:odia or:oriya os:ossetian pa:panjabi
pa:punjabi pi:pali pl:polish pl:polski ps:pashto ps:pushto pt:portugues pt:portuguese
qu:quechua rm:romansh rn:rundi ro:moldavian ro:romanian ru:russian ru:russkij
rw:kinyarwanda sa:sanskrit sc:sardinian sd:sindhi se:northern-sami sg:sango
sh:serbo-croatian si:sinhala si:sinhalese sk:slovak sl:slovenian sm:samoan sn:shona
so:somali sq:albanian sr:serbian ss:swati st:southern-sotho su:sundanese sv:svenska
sv:swedish sw:swahili ta:tamil te:telugu tg:tajik th:thai ti:tigrinya tk:turkmen
tl:tagalog tn:tswana to:tonga tr:turkce tr:turkish ts:tsonga tt:tatar tw:twi ty:tahitian
ug:uighur ug:uyghur uk:ukrainian ur:urdu uz:uzbek ve:venda vi:vietnamese vo:volapuk
wa:walloon wo:wolof xh:xhosa yi:yiddish yo:yoruba yue:cantonese za:zhuang zh:chinese
zh:mandarin zh:zhongwen zu:zulu
""".split()
    )
}
# Languages of countries whose code is no language's, but stands where one should.
CODES_BY_COUNTRY = {
    **{"at": "de", "au": "en", "by": "be", "cl": "es", "cn": "zh", "cz": "cs"},
    **{"dk": "da", "gb": "en", "gr": "el", "hk": "zh", "il": "he", "iq": "ar"},
    **{"ir": "fa", "jp": "ja", "kz": "kk", "lk": "si", "me": "sr", "mx": "es"},
    **{"nz": "en", "ph": "fil", "pk": "ur", "rs": "sr", "ua": "uk", "us": "en"},
    "vn": "vi",
}


def is_code(code: str) -> bool:
    """Return whether a code in small letters is a language's or a family's.

    >>> [is_code(code) for code in ("de", "ger", "yue", "qaa", "jp", "xyz", "german")]
    [True, True, True, True, False, False, False]
    """
    if len(code) == 3:
        # qaa to qtz are for local use.
        return code in _three_letters() or "qaa" <= code <= "qtz"
    return code in TWO_LETTERS


@functools.cache
def _three_letters() -> frozenset[str]:
    return frozenset(
        word[:2] + letter for word in _THREE_LETTERS.split() for letter in word[2:]
    )
